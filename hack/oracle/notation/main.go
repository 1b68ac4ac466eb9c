// Command notation signs artifacts with the libraries of the Notary Project, has notation-go verify them, and writes
// signatures and verdicts as JSON. The cases of crates/signature/testdata/notation are its output:
//
//	go run . > ../../../crates/signature/testdata/notation/cases.json
//
// Keys are made anew each time and thrown away. Certificates are valid for a hundred years, or have been in 2020.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	repository  = "registry.example.com/org/app"
	payloadType = "application/vnd.cncf.notary.payload.v1+json"
)

// Case is one signature and what notation-go says of it.
type Case struct {
	Name         string          `json:"name"`
	MediaType    string          `json:"mediaType"`
	Envelope     []byte          `json:"envelope"`
	Policy       json.RawMessage `json:"policy"`
	Certificates []string        `json:"certificates"`
	Artifact     struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int64  `json:"size"`
		Manifest  string `json:"manifest"`
	} `json:"artifact"`
	// trusted, untrusted or refused
	Verdict string `json:"verdict"`
	Error   string `json:"error,omitempty"`
}

type signer struct {
	key   crypto.Signer
	chain []*x509.Certificate
}

var serial int64

func certificate(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	serial++
	template.SerialNumber = big.NewInt(serial)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	check(err)
	parsed, err := x509.ParseCertificate(der)
	check(err)
	return parsed
}

func name(common string) pkix.Name {
	return pkix.Name{Country: []string{"US"}, Province: []string{"WA"}, Organization: []string{"example"}, CommonName: common}
}

// issue makes a root and a leaf for the key, or one self-signed certificate.
func issue(key crypto.Signer, change func(leaf *x509.Certificate)) signer {
	from, to := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	root := &x509.Certificate{
		Subject: name("root"), NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	rootCertificate := certificate(root, root, rootKey.Public(), rootKey)
	leaf := &x509.Certificate{
		Subject: name("signer"), NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if change != nil {
		change(leaf)
	}
	leafCertificate := certificate(leaf, rootCertificate, key.Public(), rootKey)
	return signer{key, []*x509.Certificate{leafCertificate, rootCertificate}}
}

func ec(curve elliptic.Curve) crypto.Signer {
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	check(err)
	return key
}

func rsaKey(bits int) crypto.Signer {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	check(err)
	return key
}

func policy(level string, change func(*trustpolicy.TrustPolicy)) *trustpolicy.Document {
	statement := trustpolicy.TrustPolicy{
		Name: "a", RegistryScopes: []string{"*"},
		SignatureVerification: trustpolicy.SignatureVerification{VerificationLevel: level},
		TrustStores:           []string{"ca:flux"}, TrustedIdentities: []string{"*"},
	}
	if change != nil {
		change(&statement)
	}
	return &trustpolicy.Document{Version: "1.0", TrustPolicies: []trustpolicy.TrustPolicy{statement}}
}

type request struct {
	name      string
	mediaType string
	by        signer
	policy    *trustpolicy.Document
	trusted   []*x509.Certificate
	sign      func(*signature.SignRequest)
	tamper    func([]byte) []byte
	signed    *ocispec.Descriptor
}

// manifest is that of an artifact with the configuration "{}" and the layer "content".
var manifest = fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/x","digest":%q,"size":2},`+
	`"layers":[{"mediaType":"application/x","digest":%q,"size":7}]}`,
	ocispec.MediaTypeImageManifest, digest.FromString("{}"), digest.FromString("content"))

var artifact = ocispec.Descriptor{
	MediaType: ocispec.MediaTypeImageManifest,
	Digest:    digest.FromString(manifest),
	Size:      int64(len(manifest)),
}

func record(r request) Case {
	target := artifact
	if r.signed != nil {
		target = *r.signed
	}
	payload, err := json.Marshal(map[string]any{"targetArtifact": target})
	check(err)
	local, err := signature.NewLocalSigner(r.by.chain, r.by.key)
	check(err)
	envelope, err := signature.NewEnvelope(r.mediaType)
	check(err)
	sign := &signature.SignRequest{
		Payload:       signature.Payload{ContentType: payloadType, Content: payload},
		Signer:        local,
		SigningTime:   time.Date(2020, 6, 1, 0, 0, 0, 0, time.UTC),
		SigningScheme: signature.SigningSchemeX509,
		SigningAgent:  "windlass-oracle",
	}
	if r.sign != nil {
		r.sign(sign)
	}
	raw, err := envelope.Sign(sign)
	check(err)
	if r.tamper != nil {
		raw = r.tamper(raw)
	}
	trusted := r.trusted
	if trusted == nil {
		trusted = r.by.chain[len(r.by.chain)-1:]
	}
	result := Case{Name: r.name, MediaType: r.mediaType, Envelope: raw}
	result.Policy, err = json.Marshal(r.policy)
	check(err)
	for _, certificate := range trusted {
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
		result.Certificates = append(result.Certificates, string(block))
	}
	result.Artifact.MediaType, result.Artifact.Digest, result.Artifact.Size = artifact.MediaType, artifact.Digest.String(), artifact.Size
	result.Artifact.Manifest = manifest
	result.Verdict, result.Error = verify(r, raw, trusted)
	return result
}

type store []*x509.Certificate

// GetCertificates gives all certificates for each store, as Flux does.
func (s store) GetCertificates(context.Context, truststore.Type, string) ([]*x509.Certificate, error) {
	return s, nil
}

func verify(r request, raw []byte, trusted []*x509.Certificate) (string, string) {
	v, err := verifier.New(r.policy, store(trusted), nil)
	check(err)
	outcome, err := v.Verify(context.Background(), artifact, raw, notation.VerifierVerifyOptions{
		ArtifactReference: repository + "@" + artifact.Digest.String(), SignatureMediaType: r.mediaType,
	})
	if err != nil {
		return "refused", err.Error()
	}
	for _, result := range outcome.VerificationResults {
		if result.Error != nil && result.Type == trustpolicy.TypeAuthenticity {
			return "untrusted", result.Error.Error()
		}
	}
	return "trusted", ""
}

func main() {
	strict := policy("strict", nil)
	good := issue(ec(elliptic.P256()), nil)
	other := issue(ec(elliptic.P256()), nil)
	old := issue(ec(elliptic.P256()), func(leaf *x509.Certificate) {
		leaf.NotAfter = time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	})
	revocable := issue(ec(elliptic.P256()), func(leaf *x509.Certificate) {
		leaf.CRLDistributionPoints = []string{"http://127.0.0.1:1/crl"}
	})
	selfSigned := func() signer {
		key := ec(elliptic.P256())
		leaf := &x509.Certificate{
			Subject: name("self"), NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
			NotAfter: time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageDigitalSignature,
		}
		return signer{key, []*x509.Certificate{certificate(leaf, leaf, key.Public(), key)}}
	}()
	unnamed := issue(ec(elliptic.P256()), func(leaf *x509.Certificate) {
		leaf.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "a@example.com"}}
	})
	expires := func(s *signature.SignRequest) { s.Expiry = time.Date(2020, 7, 1, 0, 0, 0, 0, time.UTC) }
	later := func(s *signature.SignRequest) { s.Expiry = time.Date(2125, 7, 1, 0, 0, 0, 0, time.UTC) }
	authority := func(s *signature.SignRequest) { s.SigningScheme = signature.SigningSchemeX509SigningAuthority }
	authorityStore := func(p *trustpolicy.TrustPolicy) { p.TrustStores = []string{"signingAuthority:flux"} }
	identity := func(subject string) func(*trustpolicy.TrustPolicy) {
		return func(p *trustpolicy.TrustPolicy) { p.TrustedIdentities = []string{"x509.subject: " + subject} }
	}
	override := func(check trustpolicy.ValidationType, action trustpolicy.ValidationAction) func(*trustpolicy.TrustPolicy) {
		return func(p *trustpolicy.TrustPolicy) {
			p.SignatureVerification.Override = map[trustpolicy.ValidationType]trustpolicy.ValidationAction{check: action}
		}
	}
	critical := func(s *signature.SignRequest) {
		s.ExtendedSignedAttributes = []signature.Attribute{{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: "p"}}
	}
	wrong := artifact
	wrong.Digest = digest.FromString("other")
	resized := artifact
	resized.Size++
	flip := func(raw []byte) []byte {
		// The signature stands at the end in COSE, and before the last brace in JWS.
		changed := append([]byte(nil), raw...)
		if raw[0] != '{' {
			changed[len(raw)-1] ^= 1
			return changed
		}
		var form map[string]any
		check(json.Unmarshal(raw, &form))
		text := []byte(form["signature"].(string))
		if text[5] == 'A' {
			text[5] = 'B'
		} else {
			text[5] = 'A'
		}
		form["signature"] = string(text)
		changed, err := json.Marshal(form)
		check(err)
		return changed
	}

	var cases []Case
	for form, mediaType := range map[string]string{"jws": jws.MediaTypeEnvelope, "cose": cose.MediaTypeEnvelope} {
		add := func(r request) {
			r.mediaType = mediaType
			r.name = form + ": " + r.name
			cases = append(cases, record(r))
		}
		add(request{name: "good", by: good, policy: strict})
		add(request{name: "good with P-384", by: issue(ec(elliptic.P384()), nil), policy: strict})
		add(request{name: "good with P-521", by: issue(ec(elliptic.P521()), nil), policy: strict})
		add(request{name: "good with RSA 2048", by: issue(rsaKey(2048), nil), policy: strict})
		add(request{name: "good with RSA 3072", by: issue(rsaKey(3072), nil), policy: strict})
		add(request{name: "good and self-signed", by: selfSigned, policy: strict})
		add(request{name: "the leaf itself is trusted", by: good, policy: strict, trusted: good.chain[:1]})
		add(request{name: "one of several is trusted", by: good, policy: strict, trusted: []*x509.Certificate{other.chain[1], good.chain[1]}})
		add(request{name: "another authority", by: good, policy: strict, trusted: other.chain[1:]})
		add(request{name: "another authority, audit", by: good, policy: policy("audit", nil), trusted: other.chain[1:]})
		add(request{name: "another authority, permissive", by: good, policy: policy("permissive", nil), trusted: other.chain[1:]})
		add(request{name: "tampered", by: good, policy: strict, tamper: flip})
		add(request{name: "tampered, audit", by: good, policy: policy("audit", nil), tamper: flip})
		add(request{name: "another digest", by: good, policy: strict, signed: &wrong})
		add(request{name: "another size", by: good, policy: strict, signed: &resized})
		add(request{name: "another digest, audit", by: good, policy: policy("audit", nil), signed: &wrong})
		add(request{name: "not yet expired", by: good, policy: strict, sign: later})
		add(request{name: "expired", by: good, policy: strict, sign: expires})
		add(request{name: "expired, permissive", by: good, policy: policy("permissive", nil), sign: expires})
		add(request{name: "expired, strict but for that", by: good, policy: policy("strict", override(trustpolicy.TypeExpiry, trustpolicy.ActionLog)), sign: expires})
		add(request{name: "an expired certificate", by: old, policy: strict})
		add(request{name: "an expired certificate, permissive", by: old, policy: policy("permissive", nil)})
		add(request{name: "an expired certificate, enforced", by: old, policy: policy("permissive", override(trustpolicy.TypeAuthenticTimestamp, trustpolicy.ActionEnforce))})
		add(request{name: "an authority that signs", by: good, policy: policy("strict", authorityStore), sign: authority})
		add(request{name: "an authority that signed with a certificate since expired", by: old, policy: policy("strict", authorityStore), sign: authority})
		add(request{name: "an authority in the wrong store", by: good, policy: strict, sign: authority})
		add(request{name: "the identity", by: good, policy: policy("strict", identity("C=US, ST=WA, O=example"))})
		add(request{name: "the whole identity", by: good, policy: policy("strict", identity("CN=signer, C=US, ST=WA, O=example"))})
		add(request{name: "another identity", by: good, policy: policy("strict", identity("C=US, ST=WA, O=others"))})
		add(request{name: "another identity, audit", by: good, policy: policy("audit", identity("C=US, ST=WA, O=others"))})
		add(request{name: "a subject with an attribute without a name", by: unnamed, policy: policy("strict", identity("C=US, ST=WA, O=example"))})
		add(request{name: "revocation cannot be asked for", by: revocable, policy: strict})
		add(request{name: "revocation is only logged", by: revocable, policy: policy("permissive", nil)})
		add(request{name: "revocation is skipped", by: revocable, policy: policy("strict", override(trustpolicy.TypeRevocation, trustpolicy.ActionSkip))})
		add(request{name: "a plugin is demanded", by: good, policy: strict, sign: critical})
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	check(encoder.Encode(cases))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		panic(err)
	}
}
