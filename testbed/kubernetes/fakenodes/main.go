// Nodes that are not there: objects of the API server, pods that "run" on them, and logs that answer.
//
// For rollouts over hundreds of nodes on one machine. What is real: the API server, the Job controller, the scheduler, every
// request of wakewatt. What is not: nothing runs on these nodes. Their kubelet is this program: it marks pods as running,
// and asks for a pod's log are answered by a command that is given the node and the arguments of the order, and whose output
// and exit code are put into the lines that `wakewatt carried` writes. kwok has no logs that depend on the pod, and takes 256
// CPU seconds to build where this takes two.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/big"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"
)

var (
	server  = flag.String("server", "https://127.0.0.1:16443", "the API server")
	token   = flag.String("token", "admintoken", "a token for it")
	count   = flag.Int("nodes", 200, "how many nodes")
	address = flag.String("address", "10.89.0.1", "where the API server finds this kubelet")
	answer  = flag.String("answer", "", "a program: NODE ARGUMENT…, its output is the answer")
)

const port = 10260

var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 16}}

type object = map[string]any

func ask(method, path string, body any) (object, error) {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, *server+path, in)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode >= 300 && reply.StatusCode != 409 && reply.StatusCode != 404 {
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, path, reply.Status, text)
	}
	found := object{}
	return found, json.Unmarshal(text, &found)
}

func at(value any, keys ...string) any {
	for _, key := range keys {
		inner, is := value.(object)
		if !is {
			return nil
		}
		value = inner[key]
	}
	return value
}

func text(value any, keys ...string) string {
	found, _ := at(value, keys...).(string)
	return found
}

func name(n int) string { return fmt.Sprintf("fake-%03d", n) }

// Makes a node, or says again that it is ready.
func beat(n int, isNew bool) error {
	if isNew {
		labels := object{"kubernetes.io/hostname": name(n), "pool": "fake", "rack": fmt.Sprintf("r%d", n%10)}
		node := object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name(n), "labels": labels}}
		if _, err := ask("POST", "/api/v1/nodes", node); err != nil {
			return err
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	room := object{"cpu": "64", "memory": "256Gi", "pods": "110"}
	status := object{
		"conditions": []object{{"type": "Ready", "status": "True", "reason": "FakeNode", "message": "not there",
			"lastHeartbeatTime": now, "lastTransitionTime": now}},
		"addresses":       []object{{"type": "InternalIP", "address": *address}},
		"daemonEndpoints": object{"kubeletEndpoint": object{"Port": port}},
		"capacity":        room, "allocatable": room,
	}
	_, err := ask("PATCH", "/api/v1/nodes/"+name(n)+"/status", object{"status": status})
	return err
}

// Keeps all of them alive.
func keep() {
	for {
		for n := range *count {
			if err := beat(n, false); err != nil {
				log.Print(err)
			}
			time.Sleep(15 * time.Second / time.Duration(*count))
		}
	}
}

// How long a pod stays, from its arguments.
func stays(pod object) time.Duration {
	for _, word := range arguments(pod) {
		if value, is := strings.CutPrefix(word, "--lives-on="); is {
			if time, err := time.ParseDuration(value); err == nil {
				return time
			}
		}
	}
	return 0
}

func arguments(pod object) []string {
	containers, _ := at(pod, "spec", "containers").([]any)
	if len(containers) == 0 {
		return nil
	}
	words, _ := at(containers[0], "args").([]any)
	var all []string
	for _, word := range words {
		if word, is := word.(string); is {
			all = append(all, word)
		}
	}
	return all
}

var begun sync.Map // uid of a pod: when it began

// One look at all pods of these nodes.
func look() error {
	list, err := ask("GET", "/api/v1/pods?limit=5000", nil)
	if err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	for _, item := range items {
		pod, _ := item.(object)
		if !strings.HasPrefix(text(pod, "spec", "nodeName"), "fake-") {
			continue
		}
		path := "/api/v1/namespaces/" + text(pod, "metadata", "namespace") + "/pods/" + text(pod, "metadata", "name")
		if text(pod, "metadata", "deletionTimestamp") != "" {
			if _, err := ask("DELETE", path, object{"gracePeriodSeconds": 0}); err != nil {
				log.Print(err)
			}
			continue
		}
		now, uid := time.Now(), text(pod, "metadata", "uid")
		stamp := now.UTC().Format(time.RFC3339)
		state, phase := object{}, ""
		since, isRunning := begun.Load(uid)
		switch text(pod, "status", "phase") {
		case "Pending":
			begun.Store(uid, now)
			phase, state = "Running", object{"running": object{"startedAt": stamp}}
		case "Running":
			if began, is := since.(time.Time); !isRunning || !is || now.Sub(began) > stays(pod)+2*time.Second {
				phase = "Succeeded"
				state = object{"terminated": object{"exitCode": 0, "reason": "Completed", "startedAt": stamp, "finishedAt": stamp}}
			}
		}
		if phase == "" {
			continue
		}
		container := object{"name": "wakewatt", "image": "none", "imageID": "none", "ready": phase == "Running", "restartCount": 0, "state": state}
		status := object{"phase": phase, "startTime": stamp, "containerStatuses": []object{container},
			"conditions": []object{{"type": "Ready", "status": "True", "lastTransitionTime": stamp}}}
		if _, err := ask("PATCH", path+"/status", object{"status": status}); err != nil {
			log.Print(err)
		}
	}
	return nil
}

// The lines of `wakewatt carried` for what the command says.
func lines(node string, words []string) string {
	command := exec.Command(*answer, append([]string{node}, words...)...)
	var said bytes.Buffer
	command.Stderr = &said
	output, err := command.Output()
	code := 0
	if err != nil {
		code = 4
		if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
			code = ended.ExitCode()
		}
	}
	var all strings.Builder
	for from := 0; from < len(output); from += 6000 {
		fmt.Fprintf(&all, "wakewatt-answer/1 %s\n", base64.StdEncoding.EncodeToString(output[from:min(from+6000, len(output))]))
	}
	tail, _ := json.Marshal(object{"code": code, "n_bytes": len(output), "crc32": crc32.ChecksumIEEE(output),
		"is_cut": false, "is_late": false, "said": said.String()})
	fmt.Fprintf(&all, "wakewatt-answer/1 end %s\n", tail)
	return all.String()
}

var answered sync.Map // uid of a pod: its log

func logs(to http.ResponseWriter, from *http.Request) {
	parts := strings.Split(strings.Trim(from.URL.Path, "/"), "/")
	if len(parts) != 4 || parts[0] != "containerLogs" {
		http.NotFound(to, from)
		return
	}
	pod, err := ask("GET", "/api/v1/namespaces/"+parts[1]+"/pods/"+parts[2], nil)
	if err != nil || at(pod, "spec") == nil {
		http.Error(to, "no such pod", http.StatusNotFound)
		return
	}
	// Once a pod: an order is carried out once, however often its log is read.
	once, _ := answered.LoadOrStore(text(pod, "metadata", "uid"), sync.OnceValue(func() string {
		words := arguments(pod)
		for n, word := range words {
			if word == "--" {
				words = words[n+1:]
				break
			}
		}
		return lines(text(pod, "spec", "nodeName"), words)
	}))
	if write, is := once.(func() string); is {
		_, _ = io.WriteString(to, write())
	}
}

// A certificate for nobody: the API server of the proof checks none.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}

func main() {
	flag.Parse()
	own, err := certificate()
	if err != nil {
		log.Fatal(err)
	}
	for n := range *count {
		if err := beat(n, true); err != nil {
			log.Fatal(err)
		}
	}
	go keep()
	go func() {
		for {
			if err := look(); err != nil {
				log.Print(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
	}()
	kubelet := http.Server{Addr: fmt.Sprintf("%s:%d", *address, port), Handler: http.HandlerFunc(logs),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}}
	log.Printf("%d nodes", *count)
	log.Fatal(kubelet.ListenAndServeTLS("", ""))
}
