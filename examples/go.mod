module github.com/semel-go/semel/examples

go 1.26.0

require github.com/semel-go/semel v0.0.0

replace github.com/semel-go/semel => ..
