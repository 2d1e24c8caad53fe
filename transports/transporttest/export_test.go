package transporttest

// Sentences returns the sentence of each subtest of the suite, by name.
func Sentences() map[string]string {
	sentences := map[string]string{}
	for _, r := range rules() {
		sentences[r.name] = r.sentence
	}
	return sentences
}
