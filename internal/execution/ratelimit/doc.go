// Package ratelimit counts calls against limits.
//
// A [Limit] says how many calls may be made in a time, how many of them in a
// burst, and how many may run at once. A [Store] counts a [Charge], which is a
// call under one key of one limit. [Memory] is the store of one process; that of
// a program which has several processes count together is asked by package engine.
//
// A call that several limits are about is charged to all of them or to none.
// What is counted under a key is forgotten only when that changes nothing: when
// its burst is whole again and none of its calls runs. So a flood of keys can
// neither outgrow the store nor wash away the counters of a caller who is over
// its limit.
//
// Which limits are about a call, and what its keys are, is decided elsewhere.
//
// The algorithm (GCRA) is written by hand: x/time/rate has one bucket an object. It
// cannot charge several limits or none, count concurrent calls, or drop idle keys
// safely.
package ratelimit
