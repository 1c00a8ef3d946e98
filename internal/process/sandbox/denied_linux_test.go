//go:build amd64 || arm64

package sandbox

import (
	"maps"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// root is a path in the kernel's form.
var root = [2]byte{'/'}

// deniedCall is a system call that a worker may not make, with arguments that are
// harmless if it succeeds.
type deniedCall struct {
	number uintptr
	args   [6]uintptr
}

const bad = ^uintptr(0)

// deniedCalls returns them by name. Some would end this process if they succeed.
func deniedCalls() map[string]deniedCall {
	path, parent, self := uintptr(unsafe.Pointer(&root)), uintptr(os.Getppid()), uintptr(os.Getpid())
	at := func(args ...uintptr) (all [6]uintptr) {
		copy(all[:], args)
		return all
	}
	all := map[string]deniedCall{
		"openat":                  {unix.SYS_OPENAT, at(0, path, unix.O_RDONLY|unix.O_CLOEXEC)},
		"openat2":                 {unix.SYS_OPENAT2, at(0, path, 0, 0)},
		"statx":                   {unix.SYS_STATX, at(0, path, 0, 0, 0)},
		"readlinkat":              {unix.SYS_READLINKAT, at(0, path, path, 1)},
		"getdents64":              {unix.SYS_GETDENTS64, at(bad)},
		"mkdirat":                 {unix.SYS_MKDIRAT, at(0, path)},
		"unlinkat":                {unix.SYS_UNLINKAT, at(bad, 0)},
		"renameat2":               {unix.SYS_RENAMEAT2, at(bad, 0, bad, 0)},
		"linkat":                  {unix.SYS_LINKAT, at(bad, 0, bad, 0)},
		"symlinkat":               {unix.SYS_SYMLINKAT, at(0, bad, 0)},
		"truncate":                {unix.SYS_TRUNCATE, at(0, 0)},
		"ftruncate":               {unix.SYS_FTRUNCATE, at(bad, 0)},
		"chdir":                   {unix.SYS_CHDIR, at(0)},
		"chroot":                  {unix.SYS_CHROOT, at(0)},
		"mount":                   {unix.SYS_MOUNT, at(0, 0, 0, 0, 0)},
		"umount2":                 {unix.SYS_UMOUNT2, at(0, bad)},
		"internet socket":         {unix.SYS_SOCKET, at(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)},
		"Unix socket":             {unix.SYS_SOCKET, at(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)},
		"socketpair":              {unix.SYS_SOCKETPAIR, at(unix.AF_UNIX, unix.SOCK_STREAM, 0, 0)},
		"connect":                 {unix.SYS_CONNECT, at(bad, 0, 0)},
		"bind":                    {unix.SYS_BIND, at(bad, 0, 0)},
		"listen":                  {unix.SYS_LISTEN, at(bad, 0)},
		"accept4":                 {unix.SYS_ACCEPT4, at(bad, 0, 0, 0)},
		"sendto":                  {unix.SYS_SENDTO, at(bad)},
		"sendmsg":                 {unix.SYS_SENDMSG, at(bad)},
		"recvmsg":                 {unix.SYS_RECVMSG, at(bad)},
		"execve":                  {unix.SYS_EXECVE, at(0, 0, 0)},
		"execveat":                {unix.SYS_EXECVEAT, at(0, 0, 0, 0, 0)},
		"clone a process":         {unix.SYS_CLONE, at(unix.CLONE_SIGHAND | uintptr(unix.SIGCHLD))},
		"clone into a namespace":  {unix.SYS_CLONE, at(unix.CLONE_THREAD | unix.CLONE_NEWNET)},
		"clone3":                  {unix.SYS_CLONE3, at(0, 0)},
		"unshare":                 {unix.SYS_UNSHARE, at(0)},
		"setns":                   {unix.SYS_SETNS, at(bad, 0)},
		"ptrace":                  {unix.SYS_PTRACE, at(unix.PTRACE_PEEKDATA, bad)},
		"process_vm_readv":        {unix.SYS_PROCESS_VM_READV, at(parent, 0, 0, 0, 0, 1)},
		"process_vm_writev":       {unix.SYS_PROCESS_VM_WRITEV, at(parent, 0, 0, 0, 0, 1)},
		"kcmp":                    {unix.SYS_KCMP, at(self, self, bad)},
		"kill the parent":         {unix.SYS_KILL, at(parent, 0)},
		"kill the group":          {unix.SYS_KILL, at(0, 0)},
		"tgkill the parent":       {unix.SYS_TGKILL, at(parent, parent, 0)},
		"tkill":                   {unix.SYS_TKILL, at(self, 0)},
		"rt_sigqueueinfo":         {unix.SYS_RT_SIGQUEUEINFO, at(parent, 0, 0)},
		"pidfd_open":              {unix.SYS_PIDFD_OPEN, at(self, 0)},
		"pidfd_send_signal":       {unix.SYS_PIDFD_SEND_SIGNAL, at(bad, 0, 0, 0)},
		"io_uring_setup":          {unix.SYS_IO_URING_SETUP, at(0, 0)},
		"bpf":                     {unix.SYS_BPF, at(bad, 0, 0)},
		"perf_event_open":         {unix.SYS_PERF_EVENT_OPEN, at(0, 0, 0, bad, 0)},
		"userfaultfd":             {unix.SYS_USERFAULTFD, at(bad)},
		"keyctl":                  {unix.SYS_KEYCTL, at(bad)},
		"add_key":                 {unix.SYS_ADD_KEY, at(0, 0, 0, 0, 0)},
		"memfd_create":            {unix.SYS_MEMFD_CREATE, at(0, 0)},
		"executable memory":       {unix.SYS_MMAP, at(0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, bad, 0)},
		"memory made executable":  {unix.SYS_MPROTECT, at(0, 0, unix.PROT_EXEC)},
		"pkey_mprotect":           {unix.SYS_PKEY_MPROTECT, at(0, 0, unix.PROT_EXEC, bad)},
		"prctl":                   {unix.SYS_PRCTL, at(unix.PR_GET_DUMPABLE)},
		"seccomp":                 {unix.SYS_SECCOMP, at(bad, 0, 0)},
		"landlock_create_ruleset": {unix.SYS_LANDLOCK_CREATE_RULESET, at(0, 0, bad)},
		"prlimit64":               {unix.SYS_PRLIMIT64, at(0, unix.RLIMIT_NOFILE, 0, 0)},
		"setuid":                  {unix.SYS_SETUID, at(uintptr(os.Getuid()))},
		"capset":                  {unix.SYS_CAPSET, at(0, 0)},
		"init_module":             {unix.SYS_INIT_MODULE, at(0, 0, 0)},
		"personality":             {unix.SYS_PERSONALITY, at(0xffffffff)},
		"ioctl":                   {unix.SYS_IOCTL, at(bad, unix.TIOCSTI, 0)},
		"fcntl":                   {unix.SYS_FCNTL, at(bad, unix.F_DUPFD, 0)},
		"dup":                     {unix.SYS_DUP, at(bad)},
		"dup3":                    {unix.SYS_DUP3, at(bad, bad, 0)},
		"pipe2":                   {unix.SYS_PIPE2, at(0, 0)},
		"sendfile":                {unix.SYS_SENDFILE, at(bad, bad, 0, 0)},
		"splice":                  {unix.SYS_SPLICE, at(bad, 0, bad, 0, 1, 0)},
		"copy_file_range":         {unix.SYS_COPY_FILE_RANGE, at(bad, 0, bad, 0, 1, 0)},
		"epoll_create1":           {unix.SYS_EPOLL_CREATE1, at(bad)},
		"eventfd2":                {unix.SYS_EVENTFD2, at(0, bad)},
		"timerfd_create":          {unix.SYS_TIMERFD_CREATE, at(bad, 0)},
		"signalfd4":               {unix.SYS_SIGNALFD4, at(bad, 0, 0, 0)},
		"inotify_init1":           {unix.SYS_INOTIFY_INIT1, at(bad)},
		"shmget":                  {unix.SYS_SHMGET, at(0, 0, 0)},
		"sched_setaffinity":       {unix.SYS_SCHED_SETAFFINITY, at(0, 0, 0)},
		"uname":                   {unix.SYS_UNAME, at(0)},
	}
	maps.Copy(all, architectureCalls(at, path))
	return all
}

// architectureCalls are calls that do not exist on all architectures, and some with numbers of
// the x32 interface. Package unix has the names of this architecture only.
func architectureCalls(at func(...uintptr) [6]uintptr, path uintptr) map[string]deniedCall {
	if runtime.GOARCH == "arm64" {
		return map[string]deniedCall{"newfstatat": {79, at(0, path, 0, 0)}}
	}
	return map[string]deniedCall{
		"open":         {2, at(path, unix.O_RDONLY|unix.O_CLOEXEC)},
		"creat":        {85, at(path, 0)},
		"newfstatat":   {262, at(0, path, 0, 0)},
		"stat":         {4, at(path, 0)},
		"unlink":       {87, at(0)},
		"rename":       {82, at(0, 0)},
		"pipe":         {22, at(0)},
		"dup2":         {33, at(bad, bad)},
		"arch_prctl":   {158, at(bad, 0)},
		"x32 getpid":   {1<<30 | unix.SYS_GETPID, at()},
		"x32 execve":   {1<<30 | 520, at(0, 0, 0)},
		"epoll_wait":   {232, at(bad)},
		"modify_ldt":   {154, at(bad)},
		"iopl":         {172, at(bad)},
		"inotify_init": {253, at()},
	}
}

// callAll makes all calls.
func callAll(all map[string]deniedCall) map[string]int {
	errnos := map[string]int{}
	for name, t := range all {
		a := t.args
		_, _, errno := unix.RawSyscall6(t.number, a[0], a[1], a[2], a[3], a[4], a[5])
		errnos[name] = int(errno)
	}
	return errnos
}

func init() {
	programs["tries"] = func() (finding, error) { return finding{Errnos: callAll(deniedCalls())}, nil }
	programs["is refused"] = func() (f finding, err error) {
		all := deniedCalls()
		opened := onThreads(func() { f.Report, err = Enter(Options{Memory: 512 << 20}) }, func() int {
			return errno(unix.Open("/proc/self/status", openRead, 0))
		})
		if err != nil {
			return f, err
		}
		f.Errnos = callAll(all)
		f.Errnos["openat on every thread"] = opened
		return f, nil
	}
	programs["goes too far"] = func() (finding, error) {
		report, err := Enter(Options{Strict: true})
		if err != nil {
			return finding{}, err
		}
		return finding{report, callAll(map[string]deniedCall{"uname": {number: unix.SYS_UNAME}})}, nil
	}
}

func TestSeccomp_deniedCalls(t *testing.T) {
	confined := runProgram(t, command(t, "is refused"))
	t.Log(confined.Report)
	needs(t, confined.Report, nameSeccomp)
	free := runProgram(t, command(t, "tries")).Errnos
	for name, errno := range confined.Errnos {
		want := unix.EPERM
		if name == "clone3" {
			want = unix.ENOSYS
		}
		if syscall.Errno(errno) != want {
			t.Errorf("%s: %v", name, syscall.Errno(errno))
		}
		if syscall.Errno(free[name]) == want {
			t.Logf("NOT TESTED on this machine: %s also fails without a sandbox", name)
		}
	}
}

func TestSeccomp_strict(t *testing.T) {
	confined := runProgram(t, command(t, "is refused"))
	needs(t, confined.Report, nameSeccomp)
	cmd := command(t, "goes too far")
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGSYS {
		t.Errorf("process state: %v", cmd.ProcessState)
	}
}
