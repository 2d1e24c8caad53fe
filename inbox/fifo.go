package inbox

// fifo is a queue of tasks that uses its memory again. The zero value is empty.
type fifo struct {
	tasks []*task
	head  int // tasks before it have gone
}

func (q *fifo) empty() bool { return q.head == len(q.tasks) }

func (q *fifo) push(t *task) {
	if q.head > 0 && len(q.tasks) == cap(q.tasks) && q.head >= len(q.tasks)/2 {
		n := copy(q.tasks, q.tasks[q.head:]) // half of it is free: better than to grow
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
	q.tasks = append(q.tasks, t)
}

// pop must not be called on an empty queue.
func (q *fifo) pop() *task {
	t := q.tasks[q.head]
	q.tasks[q.head] = nil
	if q.head++; q.empty() {
		q.tasks, q.head = q.tasks[:0], 0
	}
	return t
}
