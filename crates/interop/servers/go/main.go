// An SSH server on golang.org/x/crypto/ssh for interoperation tests: it accepts the keys it is told to accept
// and runs each exec request with /bin/sh. It ends when its standard input does.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// listFlag is a flag that may be given several times.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, ",") }

func (l *listFlag) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func main() {
	var hostKeys listFlag
	listen := flag.String("listen", "127.0.0.1:0", "address and port")
	authorized := flag.String("authorized-keys", "", "file of accepted user keys")
	kex := flag.String("kex", "", "key exchanges, comma-separated (default: all that are not insecure)")
	ciphers := flag.String("ciphers", "", "ciphers, comma-separated (default: all that are not insecure)")
	macs := flag.String("macs", "", "MACs, comma-separated (default: all that are not insecure)")
	rekey := flag.Uint64("rekey-bytes", 0, "ask for new keys after so many bytes (default: the library's)")
	flag.Var(&hostKeys, "host-key", "host key file (repeatable)")
	flag.Parse()

	supported := ssh.SupportedAlgorithms()
	config := &ssh.ServerConfig{PublicKeyCallback: acceptKeys(*authorized)}
	config.KeyExchanges = listOr(*kex, supported.KeyExchanges)
	config.Ciphers = listOr(*ciphers, supported.Ciphers)
	config.MACs = listOr(*macs, supported.MACs)
	config.RekeyThreshold = *rekey
	for _, file := range hostKeys {
		config.AddHostKey(readHostKey(file))
	}

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	go endWithStdin()
	fmt.Println("listening", listener.Addr())
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go serve(connection, config)
	}
}

// endWithStdin stops the program when whoever started it goes away.
func endWithStdin() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func listOr(names string, otherwise []string) []string {
	if names == "" {
		return otherwise
	}
	return strings.Split(names, ",")
}

func readHostKey(file string) ssh.Signer {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		log.Fatalf("%s: %v", file, err)
	}
	return signer
}

// acceptKeys reads the file anew at each login, so that a test may change it while the server runs.
func acceptKeys(file string) func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	return func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		rest, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for len(rest) > 0 {
			var accepted ssh.PublicKey
			accepted, _, _, rest, err = ssh.ParseAuthorizedKey(rest)
			if err != nil {
				break
			}
			if bytes.Equal(accepted.Marshal(), offered.Marshal()) {
				return nil, nil
			}
		}
		return nil, fmt.Errorf("%s is not in %s", ssh.FingerprintSHA256(offered), file)
	}
}

func serve(tcp net.Conn, config *ssh.ServerConfig) {
	defer tcp.Close()
	connection, channels, requests, err := ssh.NewServerConn(tcp, config)
	if err != nil {
		log.Printf("%s: %v", tcp.RemoteAddr(), err)
		return
	}
	defer connection.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			offered.Reject(ssh.UnknownChannelType, "only sessions here")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			log.Printf("%s: %v", tcp.RemoteAddr(), err)
			return
		}
		go (&session{channel: channel}).handle(requests)
	}
}
