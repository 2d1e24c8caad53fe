package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc, on every Linux.
const tick = time.Second / 100

// process is what /proc says of one.
type process struct {
	name   string
	parent int
	own    time.Duration // how long it has computed
	waited time.Duration // how long its children have that have ended
}

// readProcess returns false where there is no such process, or no /proc.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	text := string(b)
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')') // a name may hold anything
	if err != nil || from < 0 || to < from {
		return p, false
	}
	fields := strings.Fields(text[to+1:]) // the third of proc(5) is the first
	const parent, user, childrenSystem = 4 - 3, 14 - 3, 17 - 3
	if len(fields) <= childrenSystem {
		return p, false
	}
	var times [4]time.Duration
	for i := range times {
		n, _ := strconv.ParseInt(fields[user+i], 10, 64)
		times[i] = tick * time.Duration(n)
	}
	p.name, p.own, p.waited = text[from+1:to], times[0]+times[1], times[2]+times[3]
	p.parent, _ = strconv.Atoi(fields[parent])
	return p, true
}

// computedBy is how long a process and its children have computed.
func computedBy(pid int) time.Duration {
	head, _ := readProcess(pid)
	sum := head.own + head.waited
	all, _ := filepath.Glob("/proc/[0-9]*") // fails on a bad pattern only
	for _, dir := range all {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if p, ok := readProcess(child); ok && p.parent == pid {
			sum += p.own
		}
	}
	return sum
}

// computedByAll is how long all processors together have computed; 0 where there is
// no /proc.
func computedByAll() (sum time.Duration) {
	b, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(b), "\n")
	const idle, waitingForDisk, guests = 4, 5, 9 // what guests compute is in the others
	for i, field := range strings.Fields(first) {
		if n, err := strconv.ParseInt(field, 10, 64); err == nil && i != idle && i != waitingForDisk && i < guests {
			sum += tick * time.Duration(n)
		}
	}
	return sum
}
