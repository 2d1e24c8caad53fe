// Package transporttest is the conformance suite for transports: what every
// source and publisher must do, one subtest for each sentence of the contract
// in package handler. A subtest that fails prints its sentence.
//
//	func TestConformance(t *testing.T) {
//		t.Parallel()
//		transporttest.Run(t, func(t *testing.T) transporttest.Transport {
//			queue := memory.NewQueue("payments")
//			return transporttest.Transport{
//				Publisher: queue,
//				NewMember: func(testing.TB) transporttest.Member {
//					source := memory.NewSource(queue)
//					return transporttest.Member{Source: source, Abort: source.Abort}
//				},
//			}
//		}, transporttest.Features{Ordered: true, Abort: true})
//	}
//
// What a transport cannot do is left out of [Features]; the subtests that need
// it are then skipped and say which feature is missing.
//
// The suite does not look for leaked goroutines: end your package's tests with
// goleak.VerifyTestMain. [Sink], which it is built on, is exported for a
// transport's own tests.
package transporttest
