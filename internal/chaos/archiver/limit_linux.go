package main

import (
	"fmt"
	"syscall"
	"unsafe"
)

// dieBehind has the kernel end this process in the middle of a write, by SIGXFSZ, when
// a file of it gets larger than so many bytes. Nobody else could be that exact: writing
// an object takes less than a millisecond. Undo it when nothing was written.
func dieBehind(bytes int) (undo func(), err error) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return nil, fmt.Errorf("read the limit of files: %w", err)
	}
	var asKernelSays [4]uint64                                                                                                                 // a struct sigaction that is all zero: the default action, and not Go's own
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ), uintptr(unsafe.Pointer(&asKernelSays)), 0, 8, 0, 0) //nolint:gosec // there is no other way to it
	if errno != 0 {
		return nil, fmt.Errorf("leave SIGXFSZ to the kernel: %w", errno)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return nil, fmt.Errorf("do without a core dump: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(bytes), Max: before.Max}); err != nil { //nolint:gosec // the size of an object
		return nil, fmt.Errorf("limit files: %w", err)
	}
	return func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) }, nil
}
