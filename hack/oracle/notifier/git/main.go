// Records what Flux's notifiers for Git services, NATS and OTLP say for the events below: one line of JSON for each
// provider and event. ../record.sh says how to run it.
//
// The services here know no statuses, and on demand one comment. Only what changes something at a service is recorded.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/notification-controller/internal/notifier"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	commit = "a1afe267b54f38b46b487f6e938a6fd508278c07"
	// A key that opens nothing.
	seed = "SUALVVCM6TTD3ZFH7334GDVGWPBK33ZLX4RAGAOAV5Z7XYU2U6C7LFAYO4"
)

type target struct {
	Type         string            `json:"type"`
	Address      string            `json:"address"`
	Channel      string            `json:"channel,omitempty"`
	Username     string            `json:"username,omitempty"`
	Password     string            `json:"password,omitempty"`
	Token        string            `json:"token,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Secret       map[string]string `json:"secret,omitempty"`
	CommitStatus string            `json:"commitStatus,omitempty"`
	// HasComment: the service has a comment of ours, with the number 42.
	HasComment bool `json:"hasComment,omitempty"`
}

type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    []byte            `json:"body"`
}

type record struct {
	Target   target        `json:"target"`
	Event    eventv1.Event `json:"event"`
	Error    string        `json:"error,omitempty"`
	Requests []request     `json:"requests"`
}

const id = "kustomization/webapp/0c9c2e41"

var targets = []target{
	{Type: "github", Address: "http://127.0.0.1:LOCAL/foo/bar.git", Token: "git-token", CommitStatus: id},
	{Type: "github", Address: "http://127.0.0.1:LOCAL/foo/bar/baz", Token: "git-token", CommitStatus: id},
	{Type: "github", Address: "http://127.0.0.1:LOCAL/foo/bar", CommitStatus: id},
	{Type: "gitlab", Address: "http://127.0.0.1:LOCAL/group/sub.group/project.git", Password: "git-token", CommitStatus: id},
	{Type: "gitlab", Address: "http://127.0.0.1:LOCAL/1234", Token: "git-token", CommitStatus: id},
	{Type: "gitea", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token", CommitStatus: id},
	{Type: "bitbucket", Address: "https://bitbucket.org/foo/bar.git", Token: "user:password", CommitStatus: id},
	{Type: "bitbucket", Address: "https://bitbucket.org/foo/bar.git", Token: "password", CommitStatus: id},
	{Type: "bitbucketserver", Address: "http://127.0.0.1:LOCAL/context/scm/foo/bar.git", Username: "user", Password: "password", CommitStatus: id},
	{Type: "bitbucketserver", Address: "http://127.0.0.1:LOCAL/scm/foo/bar.git", Token: "git-token", CommitStatus: id},
	{Type: "azuredevops", Address: "http://127.0.0.1:LOCAL/org/my%20project/_git/repo", Token: "git-token", CommitStatus: id},
	{Type: "githubdispatch", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token"},
	{Type: "githubpullrequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token"},
	{Type: "githubpullrequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token", HasComment: true},
	{Type: "gitlabmergerequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token"},
	{Type: "gitlabmergerequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token", HasComment: true},
	{Type: "giteapullrequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token"},
	{Type: "giteapullrequestcomment", Address: "http://127.0.0.1:LOCAL/foo/bar", Token: "git-token", HasComment: true},
	{Type: "otel", Address: "http://127.0.0.1:LOCAL", Headers: map[string]string{"x-team": "blue"}, Password: "otel-token"},
	{Type: "otel", Address: "http://127.0.0.1:LOCAL/in", Headers: map[string]string{"x-team": "blue"}, Username: "user", Password: "otel-token"},
	{Type: "nats", Address: "nats://127.0.0.1:NATS", Channel: "flux.events", Username: "user", Password: "password"},
	{Type: "nats", Address: "127.0.0.1:NATS", Channel: "flux.events", Secret: map[string]string{"nkey": seed}},
	{Type: "nats", Address: "nats://t0ken@127.0.0.1:NATS", Channel: "flux.events", Secret: map[string]string{
		"creds": "-----BEGIN NATS USER JWT-----\neyJ0.eyJq.c2ln\n------END NATS USER JWT------\n\n*** IMPORTANT ***\n\n" +
			"-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n",
	}},
}

func events() []eventv1.Event {
	when := metav1.NewTime(time.Date(2022, 10, 28, 7, 26, 19, 0, time.UTC))
	event := func(kind, severity, reason, message string, metadata map[string]string) eventv1.Event {
		return eventv1.Event{
			InvolvedObject: corev1.ObjectReference{
				APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: kind, Namespace: "apps", Name: "webapp",
				UID: "7d0cdc51-ddcf-4743-b223-83ca5c699632",
			},
			Severity: severity, Timestamp: when, Message: message, Reason: reason, Metadata: metadata,
			ReportingController: "kustomize-controller",
		}
	}
	return []eventv1.Event{
		event("Kustomization", "info", "ReconciliationSucceeded", "Reconciliation finished in 1s",
			map[string]string{"revision": "main@sha1:" + commit, "change_request": "7"}),
		event("Kustomization", "error", "HealthCheckFailed", "timeout waiting for:\n[Deployment/apps/web_app] <a&b>",
			map[string]string{"revision": "latest@sha256:00", "originRevision": "main/" + commit, "change_request": "7", "summary": "blue"}),
		event("OCIRepository", "error", "OCIArtifactPullFailed2", "no such tag",
			map[string]string{"oci-digest": "sha256:00", "app-version": "6.5.0", "commit": "sha1:" + commit, "change_request": "7"}),
		event("HelmRepository", "trace", "Succeeded", "stored", map[string]string{"revision": "main@sha1:" + commit, "change_request": "x"}),
		event("HelmRelease", "info", "UpgradeSucceeded", "upgraded", map[string]string{"revision": "6.5.0"}),
	}
}

func main() {
	world := &world{}
	world.listen()
	must(os.Setenv("BITBUCKET_API_BASE_URL", "http://127.0.0.1:"+world.port+"/2.0"))
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for _, target := range targets {
		for _, event := range events() {
			recorded := *event.DeepCopy()
			world.target, world.event = target, event
			err := post(target, event, world)
			written := record{Target: target, Event: recorded, Requests: world.take()}
			if err != nil {
				written.Error = strings.NewReplacer("127.0.0.1:"+world.port, "127.0.0.1:LOCAL").Replace(err.Error())
			}
			must(encoder.Encode(written))
		}
	}
}

func post(target target, event eventv1.Event, world *world) error {
	secret := map[string][]byte{}
	for key, value := range target.Secret {
		secret[key] = []byte(value)
	}
	headers := map[string]string{}
	for key, value := range target.Headers {
		headers[key] = value
	}
	address := strings.NewReplacer("LOCAL", world.port, "NATS", world.nats).Replace(target.Address)
	alert := metav1.ObjectMeta{Name: "on-call", Namespace: "apps", UID: "4f2f4dd9-6b0a-4ea9-8e44-6ab0d9f5e2a1"}
	ctx := notifier.WithAlertMetadata(context.Background(), alert)
	sender, err := notifier.NewFactory(ctx,
		notifier.WithUsername(target.Username), notifier.WithPassword(target.Password), notifier.WithToken(target.Token),
		notifier.WithChannel(target.Channel), notifier.WithHeaders(headers), notifier.WithSecretData(secret),
		notifier.WithCommitStatus(target.CommitStatus), notifier.WithProviderUID("provider-uid"), notifier.WithURL(address),
	).Notifier(target.Type)
	if err != nil {
		return err
	}
	return sender.Post(ctx, event)
}

type world struct {
	port, nats string
	target     target
	event      eventv1.Event
	mutex      sync.Mutex
	heard      []request
}

func (w *world) take() []request {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	heard := w.heard
	w.heard = nil
	if heard == nil {
		heard = []request{}
	}
	return heard
}

func (w *world) hear(heard request) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.heard = append(w.heard, heard)
}

func (w *world) listen() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	_, w.port, _ = net.SplitHostPort(listener.Addr().String())
	go func() { must(http.Serve(listener, w)) }()
	nats, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	_, w.nats, _ = net.SplitHostPort(nats.Addr().String())
	go func() {
		for {
			connection, err := nats.Accept()
			must(err)
			go w.serveNATS(connection)
		}
	}()
}

func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	out.Header().Set("Content-Type", "application/json")
	path := in.URL.EscapedPath()
	if in.Method != http.MethodGet && in.Method != http.MethodOptions {
		body, err := io.ReadAll(in.Body)
		must(err)
		headers := map[string]string{}
		for _, name := range []string{"Authorization", "Private-Token", "X-Atlassian-Token", "X-Team"} {
			if value := in.Header.Get(name); value != "" {
				headers[name] = value
			}
		}
		body = bytes.ReplaceAll(body, []byte("127.0.0.1:"+w.port), []byte("127.0.0.1:LOCAL"))
		w.hear(request{Method: in.Method, Path: path, Headers: headers, Body: body})
		if w.target.Type == "otel" {
			out.Header().Set("Content-Type", "application/x-protobuf")
			return
		}
		out.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(out, "{}")
		return
	}
	_, _ = io.WriteString(out, w.answer(out, in, path))
}

func (w *world) answer(out http.ResponseWriter, in *http.Request, path string) string {
	switch {
	case in.Method == http.MethodOptions:
		return `{"count":1,"value":[{"id":"428dd4fb-fda5-4722-af02-9313b80305da","area":"git","resourceName":"statuses",` +
			`"routeTemplate":"{project}/_apis/git/repositories/{repositoryId}/commits/{commitId}/statuses",` +
			`"resourceVersion":1,"minVersion":"2.0","maxVersion":"6.1","releasedVersion":"6.0"}]}`
	case strings.HasSuffix(path, "/version"):
		return `{"version":"1.22.0"}`
	case strings.HasSuffix(path, "/user"):
		return `{"login":"flux","username":"flux","id":1}`
	case strings.HasSuffix(path, "/comments"), strings.HasSuffix(path, "/notes"):
		if !w.target.HasComment {
			return "[]"
		}
		object := w.event.InvolvedObject
		key := fmt.Sprintf("comment-key:provider-uid/%s/%s/%s -->", object.Kind, object.Namespace, object.Name)
		who := map[string]any{"login": "flux", "username": "flux", "id": 1}
		comment := func(number int, marker string) map[string]any {
			return map[string]any{"id": number, "body": marker + key + "\n\nold", "user": who, "author": who}
		}
		written, err := json.Marshal([]any{comment(41, "<!-- other-"), comment(42, "<!-- flux-"+w.prefix()+"-")})
		must(err)
		return string(written)
	case w.target.Type == "azuredevops":
		return `{"count":0,"value":[]}`
	case strings.HasPrefix(w.target.Type, "bitbucket"):
		out.WriteHeader(http.StatusNotFound)
		return "{}"
	}
	return "[]"
}

func (w *world) prefix() string {
	if w.target.Type == "gitlabmergerequestcomment" {
		return "mr"
	}
	return "pr"
}

func (w *world) serveNATS(connection net.Conn) {
	defer connection.Close()
	_, _ = io.WriteString(connection, `INFO {"server_id":"x","version":"2.12.0","proto":1,"nonce":"nonce","max_payload":1048576}`+"\r\n")
	reader := bufio.NewReader(connection)
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "CONNECT":
			w.hear(request{Method: word, Body: []byte(rest)})
		case "PUB":
			subject, length, _ := strings.Cut(rest, " ")
			size, err := strconv.Atoi(length)
			must(err)
			payload := make([]byte, size+2)
			_, err = io.ReadFull(reader, payload)
			must(err)
			w.hear(request{Method: word, Path: subject, Body: payload[:size]})
		case "PING":
			_, _ = io.WriteString(connection, "PONG\r\n")
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
