// Package deployment reads out of the files of a server how it is deployed beside
// the servers that it federates.
//
// [Complete] adds to a [compose.Deployment] what the operator's file and the tool
// files say: containers, secrets and who has them, files that are read, values of
// variables. What only works on the machine where the files stand, such as a
// program or a path, it refuses at its place, and [Unaccepted] warns of upstreams that
// would be trusted anew at each start. [Tools] are the files that the
// server in the container finds.
//
// The package writes nothing, reads no values of secrets, and opens none of the
// files that the operator's file names.
package deployment
