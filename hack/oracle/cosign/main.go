// Command cosign signs an artifact in a registry with cosign's own libraries, has them verify it as Flux asks them to, and
// writes what is in the registry and the verdicts as JSON. The cases of crates/signature/testdata/cosign are its output:
//
//	go run . > ../../../crates/signature/testdata/cosign/cases.json
//
//	go run . attestations > ../../../crates/signature/testdata/cosign/attestations.json
//
// Keys are made anew each time and thrown away.
package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	gcrstatic "github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	ocimutate "github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"

	"encoding/base64"
)

// Case is a repository with an artifact, and what cosign says of it for one key.
type Case struct {
	Name      string              `json:"name"`
	Key       string              `json:"key"`
	Digest    string              `json:"digest"`
	Manifests map[string]Manifest `json:"manifests"`
	Blobs     map[string][]byte   `json:"blobs"`
	// Of an attestation: the type that is asked for.
	PredicateType string `json:"predicateType,omitempty"`
	Verdict       string `json:"verdict"`
	Error         string `json:"error,omitempty"`
}

// Manifest is one by its tag or digest.
type Manifest struct {
	MediaType string `json:"mediaType"`
	Content   []byte `json:"content"`
}

func signerOf(key crypto.PrivateKey) signature.SignerVerifier {
	signer, err := signature.LoadSignerVerifier(key, crypto.SHA256)
	check(err)
	return signer
}

func simple(repository name.Repository, image v1.Hash, signer signature.Signer, about string) {
	digest, err := name.NewDigest(repository.Name() + "@" + about)
	check(err)
	text, err := payload.Cosign{Image: digest}.MarshalJSON()
	check(err)
	raw, err := signer.SignMessage(bytes.NewReader(text))
	check(err)
	one, err := static.NewSignature(text, base64.StdEncoding.EncodeToString(raw))
	check(err)
	entity, err := ociremote.SignedEntity(repository.Digest(image.String()))
	check(err)
	signed, err := ocimutate.AttachSignatureToEntity(entity, one)
	check(err)
	check(ociremote.WriteSignatures(repository, signed))
}

const (
	statementKind = "application/vnd.in-toto+json"
	signatureType = "https://sigstore.dev/cosign/sign/v1"
)

func statementOf(about, predicateType string) string {
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],`+
		`"predicateType":%q,"predicate":{"tests":"passed"}}`, strings.TrimPrefix(about, "sha256:"), predicateType)
}

func bundle(repository name.Repository, image v1.Hash, signer signature.Signer, about string) {
	bundleOf(repository, image, signer, about, signatureType)
}

// layer attaches an attestation of the old form.
func layer(repository name.Repository, image v1.Hash, signer signature.Signer, about, predicateType string) {
	statement := statementOf(about, predicateType)
	wrapped, err := dsse.WrapSigner(signer, statementKind).SignMessage(strings.NewReader(statement))
	check(err)
	one, err := static.NewAttestation(wrapped, static.WithLayerMediaType("application/vnd.dsse.envelope.v1+json"),
		static.WithAnnotations(map[string]string{"predicateType": predicateType}))
	check(err)
	entity, err := ociremote.SignedEntity(repository.Digest(image.String()))
	check(err)
	attested, err := ocimutate.AttachAttestationToEntity(entity, one)
	check(err)
	check(ociremote.WriteAttestations(repository, attested))
}

func bundleOf(repository name.Repository, image v1.Hash, signer signature.Signer, about, predicateType string) {
	statement, kind := statementOf(about, predicateType), statementKind
	wrapped, err := dsse.WrapSigner(signer, kind).SignMessage(strings.NewReader(statement))
	check(err)
	var envelope struct {
		Signatures []struct {
			Sig []byte `json:"sig"`
		} `json:"signatures"`
	}
	check(json.Unmarshal(wrapped, &envelope))
	made := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: "key"}},
		},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: []byte(statement), PayloadType: kind,
			Signatures: []*protodsse.Signature{{Sig: envelope.Signatures[0].Sig}},
		}},
	}
	raw, err := protojson.Marshal(made)
	check(err)
	check(ociremote.WriteAttestationNewBundleFormat(repository.Digest(image.String()), raw, predicateType))
}

// verify asks as source-controller does: bundles if there are any, else signatures of the old form.
func verify(ref name.Digest, key signature.Verifier) error {
	opts := &cosign.CheckOpts{SigVerifier: key, IgnoreTlog: true, Offline: true, NewBundleFormat: true}
	bundles, _, err := cosign.GetBundles(context.Background(), ref, nil)
	if len(bundles) == 0 || err != nil {
		opts.NewBundleFormat = false
		_, _, err = cosign.VerifyImageSignatures(context.Background(), ref, opts)
	} else {
		_, _, err = cosign.VerifyImageAttestations(context.Background(), ref, opts)
	}
	return err
}

// verifyAttestation asks as cosign verify-attestation does: bundles if there are any, else attestations of the old form; then
// for one of the type.
func verifyAttestation(predicateType string) func(name.Digest, signature.Verifier) error {
	return func(ref name.Digest, key signature.Verifier) error {
		opts := &cosign.CheckOpts{SigVerifier: key, IgnoreTlog: true, Offline: true, NewBundleFormat: true,
			ClaimVerifier: cosign.IntotoSubjectClaimVerifier}
		bundles, _, err := cosign.GetBundles(context.Background(), ref, nil)
		opts.NewBundleFormat = len(bundles) > 0 && err == nil
		found, _, err := cosign.VerifyImageAttestations(context.Background(), ref, opts)
		if err != nil {
			return err
		}
		for _, one := range found {
			var envelope struct{ Payload []byte }
			var statement struct{ PredicateType string }
			raw, err := one.Payload()
			check(err)
			check(json.Unmarshal(raw, &envelope))
			check(json.Unmarshal(envelope.Payload, &statement))
			if statement.PredicateType == predicateType {
				return nil
			}
		}
		return fmt.Errorf("none of the attestations matched the predicate type: %s", predicateType)
	}
}

// record makes a repository, signs, verifies with the key and reads everything back.
func record(title string, key signature.Verifier, withReferrers bool, sign func(name.Repository, v1.Hash)) Case {
	return recordWith(title, key, withReferrers, sign, verify)
}

func recordWith(title string, key signature.Verifier, withReferrers bool, sign func(name.Repository, v1.Hash),
	verify func(name.Digest, signature.Verifier) error) Case {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(withReferrers), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	var manifests, blobs []string
	seen := func(r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		reference := parts[len(parts)-1]
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			manifests = append(manifests, reference)
		}
		if digest := r.URL.Query().Get("digest"); r.Method == http.MethodPut && digest != "" {
			blobs = append(blobs, digest)
		}
	}
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		inner.ServeHTTP(w, r)
	})
	repository, err := name.NewRepository(strings.TrimPrefix(server.URL, "http://") + "/org/app")
	check(err)
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), gcrstatic.NewLayer([]byte("content"), "application/x"))
	check(err)
	check(remote.Write(repository.Tag("latest"), image))
	digest, err := image.Digest()
	check(err)
	sign(repository, digest)
	result := Case{Name: title, Digest: digest.String(), Manifests: map[string]Manifest{}, Blobs: map[string][]byte{}, Verdict: "good"}
	if err := verify(repository.Digest(digest.String()), key); err != nil {
		result.Verdict, result.Error = "refused", strings.ReplaceAll(err.Error(), repository.RegistryStr(), "registry")
	}
	public, err := key.PublicKey()
	check(err)
	pem, err := cryptoutils.MarshalPublicKeyToPEM(public)
	check(err)
	result.Key = string(pem)
	for _, reference := range manifests {
		content, header := get(server.URL + "/v2/org/app/manifests/" + reference)
		result.Manifests[reference] = Manifest{header.Get("Content-Type"), content}
	}
	for _, reference := range blobs {
		result.Blobs[reference], _ = get(server.URL + "/v2/org/app/blobs/" + reference)
	}
	return result
}

func get(url string) ([]byte, http.Header) {
	response, err := http.Get(url)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	if response.StatusCode != http.StatusOK {
		panic(fmt.Sprint(url, response.Status))
	}
	return body, response.Header
}

// attestations are those of images that were tested.
func attestations() (cases []Case) {
	const wanted, another = "https://in-toto.io/attestation/test-result/v0.1", "https://slsa.dev/provenance/v1"
	made := func() signature.SignerVerifier {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		return signerOf(key)
	}
	signer, other := made(), made()
	wrong := "sha256:" + strings.Repeat("0", 64)
	type attach func(name.Repository, v1.Hash, signature.Signer, string, string)
	for _, form := range []struct {
		title  string
		attest attach
	}{{"layer", layer}, {"bundle", bundleOf}} {
		attest := form.attest
		add := func(title string, withReferrers bool, sign func(name.Repository, v1.Hash)) {
			one := recordWith(form.title+": "+title, signer, withReferrers, sign, verifyAttestation(wanted))
			one.PredicateType = wanted
			cases = append(cases, one)
		}
		add("good", true, func(r name.Repository, h v1.Hash) { attest(r, h, signer, h.String(), wanted) })
		add("found by the tag for referrers", false, func(r name.Repository, h v1.Hash) { attest(r, h, signer, h.String(), wanted) })
		add("another key", true, func(r name.Repository, h v1.Hash) { attest(r, h, other, h.String(), wanted) })
		add("another type", true, func(r name.Repository, h v1.Hash) { attest(r, h, signer, h.String(), another) })
		add("one of two", true, func(r name.Repository, h v1.Hash) {
			attest(r, h, signer, h.String(), another)
			attest(r, h, signer, h.String(), wanted)
		})
		add("about another image", true, func(r name.Repository, h v1.Hash) { attest(r, h, signer, wrong, wanted) })
		add("a signature", true, func(r name.Repository, h v1.Hash) { attest(r, h, signer, h.String(), signatureType) })
	}
	return cases
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "attestations" {
		write(attestations())
		return
	}
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	check(err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	second, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	other := signerOf(second)
	var cases []Case
	for form, sign := range map[string]func(name.Repository, v1.Hash, signature.Signer, string){"simple": simple, "bundle": bundle} {
		for kind, key := range map[string]crypto.PrivateKey{"P-256": p256, "P-384": p384, "RSA": rsa2048, "Ed25519": edwards} {
			signer := signerOf(key)
			cases = append(cases, record(form+": "+kind, signer, true, func(r name.Repository, h v1.Hash) { sign(r, h, signer, h.String()) }))
		}
		signer := signerOf(p256)
		wrong := "sha256:" + strings.Repeat("0", 64)
		cases = append(cases,
			record(form+": found by the tag for referrers", signer, false, func(r name.Repository, h v1.Hash) { sign(r, h, signer, h.String()) }),
			record(form+": another key", signer, true, func(r name.Repository, h v1.Hash) { sign(r, h, other, h.String()) }),
			record(form+": one of two", signer, true, func(r name.Repository, h v1.Hash) {
				sign(r, h, other, h.String())
				sign(r, h, signer, h.String())
			}),
			record(form+": about another image", signer, true, func(r name.Repository, h v1.Hash) { sign(r, h, signer, wrong) }),
		)
	}
	signer := signerOf(p256)
	cases = append(cases,
		record("unsigned", signer, true, func(name.Repository, v1.Hash) {}),
		record("a bad bundle beside a good signature of the old form", signer, true, func(r name.Repository, h v1.Hash) {
			simple(r, h, signer, h.String())
			bundle(r, h, other, h.String())
		}),
	)
	write(cases)
}

func write(cases []Case) {
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
