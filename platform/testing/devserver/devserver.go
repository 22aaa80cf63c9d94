// Package devserver runs PostgreSQL and RabbitMQ as private servers:
// with a folder, ports, an account and a configuration of their own, so that
// they never meet a server that the machine already runs. The native stack and
// the tests that break a server are built on it.
//
// It prepares folders and commands. The caller that starts a command owns its process.
package devserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Superuser is the name of the account that may do everything on a server.
const Superuser = "cityconnect"

// A TLS makes a server take connections over TLS, too. Its zero value does not.
type TLS struct {
	Certificate, Key []byte // PEM
}

const (
	certificateFile = "certificate.pem"
	keyFile         = "key.pem"
)

// write puts the files into dir, the server's folder.
func (t TLS) write(dir string) error {
	if t.Certificate == nil {
		return nil
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, certificateFile), t.Certificate, 0o600),
		os.WriteFile(filepath.Join(dir, keyFile), t.Key, 0o600))
}

// account returns the unprivileged account under which a server runs when we
// are root, which PostgreSQL refuses and nothing needs: the distribution's own
// of that name, or nobody. For everyone else it is nil, which is ourselves.
func account(name string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		if found, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find an account without rights: %w", err)
		}
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", found.Username, err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %s: %w", found.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// command prepares a program that runs in dir under the account of that name, as a
// process group of its own.
func command(ctx context.Context, name, dir, path string, args ...string) (*exec.Cmd, error) {
	owner, err := account(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	return cmd, nil
}

// execute runs a command to its end, unless it could not be prepared. Its error has what
// the command has written.
func execute(cmd *exec.Cmd, err error) error {
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}

// folder makes dir for a server that runs under the account of that name, and makes dir its
// real path. Where the account cannot reach dir (a clone under /root, say), the folder
// is in /var/tmp and dir is a link to it.
func folder(dir *string, name string) (owner *syscall.Credential, err error) {
	if owner, err = account(name); err != nil {
		return nil, err
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return nil, err
	}
	parent := filepath.Dir(*dir)
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // the folder itself is closed, below
		return nil, err
	}
	if _, err := os.Lstat(*dir); os.IsNotExist(err) {
		look := exec.CommandContext(context.Background(), "test", "-x", parent)
		look.SysProcAttr = &syscall.SysProcAttr{Credential: owner}
		if look.Run() == nil {
			err = os.Mkdir(*dir, 0o700)
		} else {
			var elsewhere string
			if elsewhere, err = os.MkdirTemp("/var/tmp", "cityconnect."); err == nil {
				err = os.Symlink(elsewhere, *dir)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	*dir, err = filepath.EvalSymlinks(*dir)
	return owner, err
}

// give makes owner that of dir and all that is in it, which is closed to others.
func give(dir string, owner *syscall.Credential) error {
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder needs its x
		return err
	}
	if owner == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(owner.Uid), int(owner.Gid))
	})
}

// FreePorts returns n ports that were free a moment ago, below those that systems
// give to outgoing connections (Linux from 32768 on, gVisor from 16000): a server
// that is stopped finds its port free when it starts again. No other process gets
// them from FreePorts before this one has ended: a broker on a busy machine listens
// half a minute after it was given its port. Browsers take any of them: see
// https://fetch.spec.whatwg.org/#port-blocking.
func FreePorts(n int) ([]int, error) {
	const first, count, attempts = 6700, 3000, 1000 // stacks take theirs above
	ports := make([]int, 0, n)
	for range attempts {
		if len(ports) == n {
			return ports, nil
		}
		port := first + rand.IntN(count)
		listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue // it is taken
		}
		defer listener.Close() // held until all are found, so that they differ
		if mine, err := reserve(port); err != nil {
			return nil, err
		} else if mine {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("find %d free ports: gave up after %d attempts", n, attempts)
}

// reserved are the files whose locks keep ports for this process.
var reserved struct {
	sync.Mutex
	files []*os.File
}

// reserve reports whether port is kept for this process from now on, by a lock
// that ends with it.
func reserve(port int) (mine bool, err error) {
	folder := filepath.Join(os.TempDir(), "cityconnect-ports")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, fmt.Errorf("reserve port: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return false, fmt.Errorf("reserve port: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, file.Close() // another process has it
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.files = append(reserved.files, file)
	return true, nil
}

// find returns the first of the folders that has the program, or the one on the
// PATH.
func find(program string, folders ...string) (string, error) {
	for _, folder := range folders {
		if info, err := os.Stat(filepath.Join(folder, program)); err == nil && info.Mode()&0o111 != 0 {
			return folder, nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: `make up` and `make test` install it", program)
	}
	return filepath.Dir(path), nil
}
