package main

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// newEndpoint is the service's HTTP side:
//
//	POST /merchants/{id}/approval
//	If-Match: "1"
//
// with the sequence number that the reviewer has seen.
func newEndpoint(a approvals) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /merchants/{id}/approval", func(w http.ResponseWriter, r *http.Request) {
		seen, err := strconv.ParseInt(strings.Trim(r.Header.Get("If-Match"), `"`), 10, 64)
		if err != nil {
			http.Error(w, `name the sequence number that you have seen, as in If-Match: "1"`, http.StatusPreconditionRequired)
			return
		}
		now, err := a.approve(r.Context(), r.PathValue("id"), seen)
		switch {
		case err == nil && now:
			w.WriteHeader(http.StatusCreated)
		case err == nil:
			w.WriteHeader(http.StatusOK)
			fmt.Fprintln(w, "it was approved before")
		case errors.Is(err, errNoMerchant):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, errStale):
			http.Error(w, err.Error(), http.StatusPreconditionFailed)
		case errors.Is(err, errAccountTaken):
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
