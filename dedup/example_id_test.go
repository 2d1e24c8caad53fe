package dedup_test

import (
	"fmt"

	"github.com/semel-go/semel/dedup"
)

// A UUID is stored as it is, any other id as the hash of its text. The SQL
// function semel.message_id says the same.
func ExampleMessageID() {
	fmt.Println(dedup.MessageID("0190b6a5-7f3e-7cc1-9d5b-4a4d3f0e2b11"))
	fmt.Println(dedup.MessageID("evt_1"))
	// Output:
	// 0190b6a5-7f3e-7cc1-9d5b-4a4d3f0e2b11
	// 130d007a-93ee-8789-b54c-e4978834551d
}

// An id that cannot identify anything is refused, and the error says why.
func ExampleCheckID() {
	fmt.Println(dedup.CheckID("evt_1"))
	fmt.Println(dedup.CheckID(""))
	fmt.Println(dedup.CheckID(" \t"))
	// Output:
	// <nil>
	// unusable message id: it is empty
	// unusable message id: it is only white space: " \t"
}
