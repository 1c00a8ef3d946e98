// Package resultcache keeps the results of calls for those who make the same
// call again.
//
// A [Store] holds results by a [Key]: what was called, and how. Of those who make
// the same call at once, one runs and the others wait, each as long as it will;
// when the one that runs fails, or goes, another of them runs. What is kept is
// bounded for each thing that is called, and in bytes for all of them.
//
// It never looks into a result, and does not decide what may be kept, or for
// whom: keys do.
//
// It is written by hand: singleflight with an LRU has no bound in bytes or for each
// thing, and one failure fails every waiter.
package resultcache
