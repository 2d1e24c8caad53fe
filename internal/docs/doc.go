// Package docs holds no code but tests of what the documents say: README,
// docs/design.md, docs/cases.md. A snippet that does not compile, a command that
// does not exist and a case without its test fail here.
package docs
