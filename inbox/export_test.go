package inbox

// ConfigOf shows an inbox's configuration with its defaults.
func ConfigOf(in *Inbox) Config { return in.cfg }
