// Package examples is the root of the programs that show Semel at work. They
// are a module of their own, so that what they need stays out of the library.
package examples
