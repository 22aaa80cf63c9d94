package report

// An Idempotent makes a request have one effect, however often it is sent.
type Idempotent struct {
	UserID   string         // who sent the request
	Key      string         // chosen by him
	Request  [32]byte       // a hash of what was asked
	Response StoredResponse // what is answered, also to repetitions
}

// A StoredResponse is the response to a request, kept for its repetitions. Only
// who gave it can read it.
type StoredResponse []byte
