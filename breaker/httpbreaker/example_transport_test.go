package httpbreaker_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/handler"
)

// A bank in maintenance is asked three times, then left alone.
func ExampleTransport() {
	bank := httpbreaker.New(httpbreaker.Config{
		Logger: slog.New(slog.DiscardHandler),
		Base: roundTrip(func(*http.Request) (*http.Response, error) { // stands for the network
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("back at nine"))}, nil
		}),
	})
	client := bank.Client()
	for range 3 {
		resp, err := client.Post("https://bank.example/charges?secret=1", "application/json", strings.NewReader(`{}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		err = httpbreaker.Check(resp)
		fmt.Println(err)
		fmt.Println("unavailable:", handler.IsUnavailable(err))
	}
	fmt.Println(bank.Breaker("bank.example").State())
	// Output:
	// POST bank.example/charges: status 503 Service Unavailable
	// unavailable: true
	// POST bank.example/charges: status 503 Service Unavailable
	// unavailable: true
	// POST bank.example/charges: status 503 Service Unavailable
	// unavailable: true
	// open
}
