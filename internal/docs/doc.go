// Package docs holds no code but tests of what the documents say: the README
// and what stands in docs. A snippet that does not compile, a command that does
// not exist, a case or a failure without its test fail here.
package docs
