// Records what Flux's notifiers send for the events below: one line of JSON for each provider and event.
// record.sh says how to run it.
//
// Everything goes through a proxy here that answers in the place of every service, also over TLS. Flux writes metadata
// in the random order of Go's maps: events have at most one key, so that there is only one order.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fluxcd/notification-controller/internal/notifier"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type target struct {
	Type     string            `json:"type"`
	Address  string            `json:"address,omitempty"`
	Channel  string            `json:"channel,omitempty"`
	Username string            `json:"username,omitempty"`
	Password string            `json:"password,omitempty"`
	Token    string            `json:"token,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	UID      string            `json:"uid,omitempty"`
}

type request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

type record struct {
	Target   target        `json:"target"`
	Event    eventv1.Event `json:"event"`
	Error    string        `json:"error,omitempty"`
	Requests []request     `json:"requests"`
}

var targets = []target{
	{Type: "generic", Address: "http://hook.example/in", Headers: map[string]string{"x-team": "blue"}},
	{Type: "generic-hmac", Address: "http://hook.example/in", Token: "hmac-key"},
	{Type: "generic-hmac", Address: "http://hook.example/in"},
	{Type: "slack", Address: "http://hooks.slack.example/services/T0/B0/abc"},
	{Type: "slack", Address: "https://slack.com/api/chat.postMessage", Token: "xoxb-1", Channel: "general", Username: "bot"},
	{Type: "discord", Address: "http://discord.example/api/webhooks/1/abc", Username: "bot", Channel: "unused"},
	{Type: "discord", Address: "http://discord.example/api/webhooks/1/abc/slack"},
	{Type: "msteams", Address: "http://prod.logic.azure.example:8443/workflows/1?sig=abc"},
	{Type: "msteams", Address: "http://acme.webhook.office.com/webhookb2/1"},
	{Type: "rocket", Address: "http://rocket.example/hooks/1/abc", Channel: "general"},
	{Type: "googlechat", Address: "http://chat.googleapis.example/v1/spaces/1/messages?key=a&token=b"},
	{Type: "webex", Address: "http://webexapis.example/v1/messages", Channel: "room", Token: "webex-token"},
	{Type: "telegram", Channel: "-123", Token: "1:telegram-token"},
	{Type: "telegram", Channel: "-123:7", Token: "1:telegram-token"},
	{Type: "telegram", Channel: "-123"},
	{Type: "lark", Address: "http://127.0.0.1:LOCAL/open-apis/bot/v2/hook/abc"},
	{Type: "matrix", Address: "http://127.0.0.1:LOCAL", Channel: "!room:example.org", Token: "matrix-token"},
	{Type: "zulip", Address: "http://zulip.example/ignored", Channel: "ops/flux/all", Username: "bot@zulip.example", Password: "zulip-key"},
	{Type: "zulip", Address: "http://zulip.example", Channel: "ops"},
	{Type: "zoom", Address: "http://integrations.zoom.example/chat/webhooks/incomingwebhook/1", Token: "zoom-token"},
	{Type: "zoom", Address: "http://integrations.zoom.example/chat/webhooks/incomingwebhook/1?format=fields", Token: "zoom-token"},
	{Type: "zoom", Address: "http://integrations.zoom.example/chat/webhooks/incomingwebhook/1"},
	{Type: "opsgenie", Address: "http://api.opsgenie.example/v2/alerts", Token: "genie", UID: "provider-uid"},
	{Type: "opsgenie", Address: "http://api.opsgenie.example/v2/alerts"},
	{Type: "pagerduty", Address: "http://events.pagerduty.example/ignored", Channel: "routing-key"},
	{Type: "incident.io", Address: "http://api.incident.example/v2/alert_events/http/1", Token: "incident-token"},
	{Type: "incident.io", Address: "http://api.incident.example/v2/alert_events/http/1"},
	{Type: "datadog", Address: "http://api.datadoghq.example", Token: "datadog-key"},
	{Type: "datadog", Address: "http://api.datadoghq.example"},
	{Type: "grafana", Address: "http://grafana.example/api/annotations", Token: "grafana-token", Username: "u", Password: "p"},
	{Type: "grafana", Address: "http://grafana.example/api/annotations", Username: "u", Password: "p"},
	{Type: "alertmanager", Address: "http://alertmanager.example/api/v2/alerts/"},
	{Type: "alertmanager", Address: "http://alertmanager.example/api/v2/alerts/", Token: "am-token", Username: "u", Password: "p"},
	{Type: "sentry", Address: "http://publickey@127.0.0.1:LOCAL/prefix/42", Channel: "staging"},
	{Type: "sentry"},
}

func events() []eventv1.Event {
	when := metav1.NewTime(time.Date(2022, 10, 28, 7, 26, 19, 0, time.UTC))
	object := corev1.ObjectReference{
		APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "apps", Name: "webapp",
		UID: "7d0cdc51-ddcf-4743-b223-83ca5c699632",
	}
	event := func(severity, reason, message string, metadata map[string]string) eventv1.Event {
		return eventv1.Event{
			InvolvedObject: object, Severity: severity, Timestamp: when, Message: message, Reason: reason,
			Metadata: metadata, ReportingController: "kustomize-controller", ReportingInstance: "pod-1",
		}
	}
	bare := event("info", "ReconciliationSucceeded", "Reconciliation finished in 1s", nil)
	bare.ReportingInstance = ""
	return []eventv1.Event{
		bare,
		event("error", "HealthCheckFailed", "health check failed after 30s: timeout waiting for:\n[Deployment/apps/web_app status: 'InProgress'] <a&b>",
			map[string]string{"revision": "main@sha1:731f7eaddfb6af01cb2173e18f0f75b0ba780ef1"}),
		event("info", "Progressing", "Deployment/apps/webapp configured", map[string]string{"summary": "cluster: blue (#1)"}),
		event("error", "build-failed", "it's *bold* ~strike~ `code` \\ done", map[string]string{"summary": "cluster: blue (#1)"}),
		event("info", "OCIArtifactUpToDate2", "é…😀", map[string]string{"change_request": "7"}),
		event("trace", "it's an_odd.reason", "", map[string]string{"we_b:site": "https://example.org/?a=b&c=d"}),
	}
}

func main() {
	world := listen()
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for _, target := range targets {
		for i, event := range events() {
			if target.Type == "sentry" && event.Severity == "trace" {
				continue // it reports itself
			}
			recorded := *event.DeepCopy() // some notifiers write into the metadata
			err := post(target, event, world)
			written := record{Target: target, Event: recorded, Requests: world.take()}
			if err != nil {
				written.Error = err.Error()
			}
			if err := encoder.Encode(written); err != nil {
				panic(err)
			}
			if err != nil && i == 0 {
				break // it refuses the target, whatever the event
			}
		}
	}
}

func post(target target, event eventv1.Event, world *world) error {
	options := []notifier.Option{
		notifier.WithUsername(target.Username), notifier.WithPassword(target.Password),
		notifier.WithToken(target.Token), notifier.WithChannel(target.Channel), notifier.WithHeaders(target.Headers),
		notifier.WithProviderUID(target.UID),
		notifier.WithURL(string(bytes.ReplaceAll([]byte(target.Address), []byte("LOCAL"), []byte(world.port)))),
	}
	if target.Type != "sentry" && target.Type != "matrix" && target.Type != "lark" {
		options = append(options, notifier.WithProxyURL("http://127.0.0.1:"+world.port))
	}
	sender, err := notifier.NewFactory(context.Background(), options...).Notifier(target.Type)
	if err != nil {
		return err
	}
	err = sender.Post(context.Background(), event)
	if sentry, ok := sender.(*notifier.Sentry); ok {
		sentry.Client.Flush(5 * time.Second)
	}
	return err
}

type world struct {
	port  string
	ca    *x509.Certificate
	key   *ecdsa.PrivateKey
	mutex sync.Mutex
	heard []request
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

func listen() *world {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "world"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(err)
	ca, err := x509.ParseCertificate(der)
	must(err)
	folder, err := os.MkdirTemp("", "notifier")
	must(err)
	file := filepath.Join(folder, "ca.pem")
	must(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(os.Setenv("SSL_CERT_FILE", file))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	w := &world{port: port, ca: ca, key: key}
	go func() { must(http.Serve(listener, w)) }()
	return w
}

func (w *world) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	if in.Method == http.MethodConnect {
		w.tunnel(out, in)
		return
	}
	w.hear(in, "http")
	out.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(out, `{"ok":true}`)
}

func (w *world) tunnel(out http.ResponseWriter, in *http.Request) {
	name, _, _ := net.SplitHostPort(in.Host)
	connection, _, err := out.(http.Hijacker).Hijack()
	must(err)
	defer connection.Close()
	_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\n\r\n")
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, w.ca, &w.key.PublicKey, w.key)
	must(err)
	inner := tls.Server(connection, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: w.key}}})
	asked, err := http.ReadRequest(bufio.NewReader(inner))
	must(err)
	w.hear(asked, "https")
	_, _ = io.WriteString(inner, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n{\"ok\":true}")
}

func (w *world) hear(in *http.Request, scheme string) {
	body, err := io.ReadAll(in.Body)
	must(err)
	headers := map[string]string{}
	for _, name := range []string{"Authorization", "Content-Type", "Gotk-Component", "X-Signature", "X-Team", "Dd-Api-Key", "X-Sentry-Auth"} {
		if value := in.Header.Get(name); value != "" {
			headers[http.CanonicalHeaderKey(name)] = value
		}
	}
	address := fmt.Sprintf("%s://%s%s", scheme, in.Host, in.URL.RequestURI())
	address = string(bytes.ReplaceAll([]byte(address), []byte("127.0.0.1:"+w.port), []byte("127.0.0.1:LOCAL")))
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if in.Header.Get("X-Sentry-Auth") != "" {
		body = withoutSurroundings(body)
	}
	w.heard = append(w.heard, request{Method: in.Method, URL: address, Headers: headers, Body: string(body)})
}

// Sentry's library writes what it knows of the process, and random ids.
func withoutSurroundings(envelope []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(envelope), []byte("\n"))
	for i, line := range lines {
		var written map[string]any
		must(json.Unmarshal(line, &written))
		for _, key := range []string{"event_id", "sent_at", "dsn", "sdk", "modules", "release", "length"} {
			delete(written, key)
		}
		if written["type"] == "transaction" && i == 2 {
			delete(written, "server_name")
		}
		for _, key := range []string{"device", "os", "runtime"} {
			if contexts, ok := written["contexts"].(map[string]any); ok {
				delete(contexts, key)
			}
		}
		var err error
		lines[i], err = json.Marshal(written)
		must(err)
	}
	return bytes.Join(lines, []byte("\n"))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
