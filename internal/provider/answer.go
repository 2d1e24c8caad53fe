package provider

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
)

// answer writes a JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // to whoever is still there
}

// refuse answers with a reason that is a word.
func refuse(w http.ResponseWriter, status int, reason string) {
	answer(w, status, map[string]string{"error": reason})
}

// reset ends the connection without an answer, so that the client gets ECONNRESET.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// answerAnd answers, and writes more behind it on a connection that the client
// believes to be usable again.
func answerAnd(w http.ResponseWriter, receipt Receipt, more func(first string) string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	body, _ := json.Marshal(receipt)
	first := fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	_, _ = fmt.Fprint(conn, first, more(first))
	_ = conn.Close()
}
