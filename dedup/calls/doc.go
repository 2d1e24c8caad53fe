// Package calls makes calls to the outside that take effect once. TODO
package calls
