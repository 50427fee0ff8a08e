package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// session is one session channel: variables first, then one command.
type session struct {
	channel     ssh.Channel
	environment []string
	command     *exec.Cmd
}

// signals are those of RFC 4254, section 6.10, that tests send.
var signals = map[string]syscall.Signal{
	"INT":  syscall.SIGINT,
	"TERM": syscall.SIGTERM,
	"KILL": syscall.SIGKILL,
	"HUP":  syscall.SIGHUP,
}

func (s *session) handle(requests <-chan *ssh.Request) {
	for request := range requests {
		accepted := false
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			if accepted = ssh.Unmarshal(request.Payload, &variable) == nil; accepted {
				s.environment = append(s.environment, variable.Name+"="+variable.Value)
			}
		case "exec":
			var line struct{ Command string }
			accepted = s.command == nil && ssh.Unmarshal(request.Payload, &line) == nil && s.start(line.Command) == nil
		case "subsystem":
			var name struct{ Name string }
			accepted = ssh.Unmarshal(request.Payload, &name) == nil && name.Name == "sftp" && s.serveFiles()
		case "signal":
			var name struct{ Name string }
			accepted = ssh.Unmarshal(request.Payload, &name) == nil && s.signal(name.Name)
		}
		if request.WantReply {
			request.Reply(accepted, nil)
		}
	}
}

// start runs the command; standard input is copied apart, so that a command which ignores it still ends.
func (s *session) start(line string) error {
	s.command = exec.Command("/bin/sh", "-c", line)
	s.command.Env = append(os.Environ(), s.environment...)
	s.command.Stdout = s.channel
	s.command.Stderr = s.channel.Stderr()
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := s.command.StdinPipe()
	if err != nil {
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	go func() {
		io.Copy(stdin, s.channel)
		stdin.Close()
	}()
	go s.finish()
	return nil
}

// serveFiles answers SFTP until the client has no more to say.
func (s *session) serveFiles() bool {
	server, err := sftp.NewServer(s.channel)
	if err != nil {
		return false
	}
	go func() {
		status := uint32(0)
		if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
			status = 1
		}
		s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		s.channel.Close()
	}()
	return true
}

func (s *session) signal(name string) bool {
	number, known := signals[name]
	return known && s.command != nil && syscall.Kill(-s.command.Process.Pid, number) == nil
}

// finish reports how the command ended: RFC 4254, section 6.10.
func (s *session) finish() {
	err := s.command.Wait()
	s.channel.CloseWrite()
	var exit *exec.ExitError
	status, signalled := syscall.WaitStatus(0), false
	if errors.As(err, &exit) {
		status = exit.Sys().(syscall.WaitStatus)
		signalled = status.Signaled()
	}
	if signalled {
		s.channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Name       string
			CoreDumped bool
			Message    string
			Language   string
		}{signalName(status.Signal()), status.CoreDump(), "", ""}))
	} else {
		s.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status.ExitStatus())}))
	}
	s.channel.Close()
}

func signalName(number syscall.Signal) string {
	for name, known := range signals {
		if known == number {
			return name
		}
	}
	return "TERM"
}
