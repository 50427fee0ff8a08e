// The simplest fast fan-out that one writes in Go: golang.org/x/crypto/ssh, a goroutine a host behind a semaphore,
// one known_hosts file read once, host keys checked. A peer for sshoal's benchmarks.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

func main() {
	hosts := flag.String("hosts", "", "file of addresses, one a line")
	port := flag.String("port", "22", "port of all hosts")
	user := flag.String("user", "", "user name")
	identity := flag.String("identity", "", "private key file")
	knownHosts := flag.String("known-hosts", "", "known_hosts file")
	window := flag.Int("window", 50, "hosts at a time")
	flag.Parse()
	command := strings.Join(flag.Args(), " ")

	signer, err := ssh.ParsePrivateKey(read(*identity))
	if err != nil {
		log.Fatal(err)
	}
	keys := parseKnownHosts(read(*knownHosts))
	var good, bad atomic.Int64
	var output sync.Mutex
	var waiting sync.WaitGroup
	slots := make(chan struct{}, *window)
	for _, host := range strings.Fields(string(read(*hosts))) {
		slots <- struct{}{}
		waiting.Go(func() {
			defer func() { <-slots }()
			address := net.JoinHostPort(host, *port)
			answer, err := run(address, *user, signer, keys[address], command)
			output.Lock()
			defer output.Unlock()
			if err != nil {
				bad.Add(1)
				fmt.Fprintf(os.Stderr, "%s: %v\n", host, err)
				return
			}
			good.Add(1)
			for line := range strings.Lines(string(answer)) {
				fmt.Printf("%s: %s", host, line)
			}
		})
	}
	waiting.Wait()
	fmt.Fprintf(os.Stderr, "%d ok, %d failed\n", good.Load(), bad.Load())
	if bad.Load() > 0 || good.Load() == 0 {
		os.Exit(1)
	}
}

func read(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

// parseKnownHosts reads plain lines, "name" and "[name]:port", into keys by "name:port".
func parseKnownHosts(text []byte) map[string]ssh.PublicKey {
	keys := make(map[string]ssh.PublicKey)
	for len(text) > 0 {
		_, names, key, _, rest, err := ssh.ParseKnownHosts(text)
		if err != nil {
			break
		}
		for _, name := range names {
			if host, port, bracketed := strings.Cut(strings.TrimPrefix(name, "["), "]:"); bracketed {
				keys[net.JoinHostPort(host, port)] = key
			} else {
				keys[net.JoinHostPort(name, "22")] = key
			}
		}
		text = rest
	}
	return keys
}

func run(address, user string, signer ssh.Signer, key ssh.PublicKey, command string) ([]byte, error) {
	if key == nil {
		return nil, fmt.Errorf("no host key for %s in known_hosts", address)
	}
	client, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
		User:              user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   ssh.FixedHostKey(key),
		HostKeyAlgorithms: []string{key.Type()},
		Timeout:           60 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	var answer bytes.Buffer
	session.Stdout = &answer
	err = session.Run(command)
	return answer.Bytes(), err
}
