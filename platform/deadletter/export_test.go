package deadletter

// SettleTimeout is for the test that needs package consumer, which imports this one.
const SettleTimeout = settleTimeout
