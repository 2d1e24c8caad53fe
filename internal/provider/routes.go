package provider

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxBody is far more than an invoice.
const maxBody = 1 << 20

// taxNumber is what the number of a customer looks like.
var taxNumber = regexp.MustCompile(`^[A-Z]{2}[0-9A-Z]{2,13}$`)

func (p *Provider) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /invoices", func(w http.ResponseWriter, r *http.Request) { p.post(w, r, "") })
	mux.HandleFunc("POST /keyed/invoices", func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		if key == "" || len(key) > 255 {
			refuse(w, http.StatusBadRequest, "no_key")
			return
		}
		p.post(w, r, key)
	})
	mux.HandleFunc("GET /invoices", p.query)
	mux.HandleFunc("GET /keyed/invoices", p.query)
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.Counts()) })
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.Faults()) })
	mux.HandleFunc("PUT /faults", p.putFaults)
	return mux
}

// post makes an invoice. Without a key it makes one more with every call.
func (p *Provider) post(w http.ResponseWriter, r *http.Request, key string) {
	came := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var invoice Invoice
	if err != nil || json.Unmarshal(body, &invoice) != nil || invoice.Number == "" {
		refuse(w, http.StatusBadRequest, "no_invoice")
		return
	}
	fault, err := p.arrive(Called, invoice.Number, key, r.Header.Get("Authorization"), came)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "ledger")
		return
	}
	if r.Header.Get("Prefer") == "processing" {
		w.WriteHeader(http.StatusProcessing)
	}
	if p.failBefore(w, fault) {
		return
	}
	if invoice.TaxNumber != "" && !taxNumber.MatchString(invoice.TaxNumber) {
		refuse(w, http.StatusUnprocessableEntity, "tax_number")
		return
	}
	if key != "" {
		known, found, err := p.begin(key, hashOf(body))
		switch {
		case errors.Is(err, errOtherBody):
			refuse(w, http.StatusUnprocessableEntity, "key_reused")
			return
		case err != nil:
			refuse(w, http.StatusConflict, "in_progress")
			return
		case found:
			p.failAfter(w, r, fault, known)
			return
		}
	}
	receipt, err := p.workSoon(fault, invoice.Number, key, hashOf(body), came)
	switch {
	case errors.Is(err, errTooLate):
		refuse(w, http.StatusServiceUnavailable, "too_late")
		return
	case err != nil:
		refuse(w, http.StatusInternalServerError, "ledger")
		return
	}
	p.failAfter(w, r, fault, receipt)
}

// workSoon works at once, or late. Late work is done though the client may be gone.
func (p *Provider) workSoon(fault Fault, number, key, body string, came time.Time) (Receipt, error) {
	p.late.Add(1)
	defer p.late.Done()
	if fault == Late {
		time.Sleep(p.Faults().LateBy)
	}
	return p.work(number, key, body, came)
}

// query tells which invoices of a number there are: one whose work is not done
// yet is not among them.
func (p *Provider) query(w http.ResponseWriter, r *http.Request) {
	number := r.FormValue("number")
	fault, err := p.arrive(Asked, number, "", r.Header.Get("Authorization"), time.Now())
	if err != nil {
		refuse(w, http.StatusInternalServerError, "ledger")
		return
	}
	if p.failBefore(w, fault) {
		return
	}
	receipts := p.of(number)
	if receipts == nil {
		receipts = []Receipt{}
	}
	answer(w, http.StatusOK, receipts)
}

func (p *Provider) putFaults(w http.ResponseWriter, r *http.Request) {
	var f Faults
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&f)
	if err == nil {
		err = p.SetFaults(f)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// failBefore lets go wrong what does before any work. It reports whether it did.
func (p *Provider) failBefore(w http.ResponseWriter, fault Fault) bool {
	switch fault {
	case ResetBefore:
		reset(w)
	case Unavailable:
		refuse(w, http.StatusServiceUnavailable, "unavailable")
	case Maintenance:
		left := time.Until(p.Faults().Until)
		w.Header().Set("Retry-After", strconv.Itoa(int(left.Seconds())+1))
		refuse(w, http.StatusServiceUnavailable, "maintenance")
	case Unauthorized:
		refuse(w, http.StatusUnauthorized, "unauthorized")
	default:
		return false
	}
	return true
}

// failAfter answers, or lets go wrong what does behind the work.
func (p *Provider) failAfter(w http.ResponseWriter, r *http.Request, fault Fault, receipt Receipt) {
	switch fault {
	case ResetAfter:
		reset(w)
	case Silent:
		<-r.Context().Done() // the client has given up
		panic(http.ErrAbortHandler)
	case ErrorAfter:
		refuse(w, http.StatusInternalServerError, "internal")
	case AnswerTwice:
		answerAnd(w, receipt, func(first string) string { return first })
	case GarbageAfter:
		answerAnd(w, receipt, func(string) string { return "HTTP/1.1 9" + strings.Repeat("\x00", 32) })
	case Die:
		p.kill()
	default:
		answer(w, http.StatusCreated, receipt)
	}
}
