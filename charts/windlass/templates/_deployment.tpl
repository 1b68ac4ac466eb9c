{{/*
A Deployment. In: root, key, controller (component and image), settings (its values), shard, args, ports, volumes, mounts,
recreate (whether the old Pod must end before the new one starts), replicated (whether each replica serves its own copy), components
(those of several in one process) and command (their whole command line, in place of args).
*/}}
{{- define "windlass.deployment" -}}
{{- $name := include "windlass.name" . -}}
{{- $replicas := int (ternary 1 .settings.replicas (eq .key "singlePod")) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "windlass.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .controller.component }}
    control-plane: controller
  {{- with .components }}
  annotations:
    windlass.dev/components: {{ join "," . }}
  {{- end }}
spec:
  replicas: {{ $replicas }}
  {{- if .recreate }}
  # Two of them would write to one folder.
  strategy:
    type: Recreate
  {{- else if .replicated }}
  # The new one copies what the old one has before that ends. All parts are named, so that they go with the strategy.
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  {{- end }}
  # Flux's selector, so that its Deployment can be taken over in its place.
  selector:
    matchLabels:
      app: {{ $name }}
  template:
    metadata:
      labels:
        app: {{ $name }}
        {{- include "windlass.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .controller.component }}
        {{- with .settings.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: "8080"
        {{- with .settings.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ .settings.name }}
      terminationGracePeriodSeconds: {{ .grace }}
      {{- with .settings.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        fsGroup: 1337
        runAsNonRoot: true
        runAsUser: 65534
        runAsGroup: 65534
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: manager
          {{- $isShared := and .root.Values.image.shared (not (has .key (list "console" "singlePod"))) }}
          image: {{ include "windlass.image" (dict "root" .root "image" (ternary "windlass-controllers" .controller.image $isShared)) }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args:
            {{- if $isShared }}
            - {{ .controller.image }}
            {{- end }}
            {{- if .command }}
            {{- range .command }}
            - {{ . | quote }}
            {{- end }}
            {{- else }}
            {{- include "windlass.args" . | trim | nindent 12 }}
            {{- end }}
          env:
            - name: RUNTIME_NAMESPACE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.namespace
            {{- if or (eq .key "notification") .replicated }}
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
            {{- end }}
            {{- with .settings.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- with .ports }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            - name: http-prom
              containerPort: 8080
              protocol: TCP
            - name: healthz
              containerPort: 9440
              protocol: TCP
          livenessProbe:
            httpGet:
              path: /healthz
              port: healthz
          readinessProbe:
            httpGet:
              path: {{ .readyPath | default "/readyz" }}
              port: {{ .readyPort | default "healthz" }}
          resources:
            {{- toYaml .settings.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsNonRoot: true
            capabilities:
              drop: [ALL]
            seccompProfile:
              type: RuntimeDefault
          volumeMounts:
            - name: temp
              mountPath: /tmp
            {{- with .mounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: temp
          emptyDir: {}
        {{- with .volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .settings.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if and .root.Values.topologySpread.create (gt $replicas 1) }}
      topologySpreadConstraints:
        {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - maxSkew: 1
          topologyKey: {{ $key }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              app: {{ $name }}
        {{- end }}
      {{- end }}
      {{- with .settings.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .settings.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end }}

{{/* The flags of a controller. In: root, key, settings, shard, args. */}}
{{- define "windlass.args" -}}
{{- range .args }}
- {{ . | quote }}
{{- end }}
{{- if ne .key "console" }}
- --watch-all-namespaces={{ .root.Values.watch.allNamespaces }}
{{- end }}
{{- if not (has .key (list "notification" "console")) }}
{{- with ternary .root.Values.watch.labelSelector (include "windlass.labelSelector" .) (has .key (list "images" "pipelines" "resourceSets")) }}
- {{ printf "--watch-label-selector=%s" . | quote }}
{{- end }}
{{- with include "windlass.eventsAddress" .root }}
- {{ printf "--events-addr=%s" . | quote }}
{{- end }}
{{- end }}
- --log-level={{ .root.Values.logging.level }}
- --log-encoding={{ .root.Values.logging.encoding }}
{{- /* Every replica of the console answers. */}}
{{- if ne .key "console" }}
- --enable-leader-election
{{- if .root.Values.tenancy.noCrossNamespaceRefs }}
- --no-cross-namespace-refs
{{- end }}
{{- end }}
{{- range .settings.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* What apply- and helm-controller need to read artifacts: flags, volume, mount. In: root, shard. */}}
{{- define "windlass.artifactArgs" -}}
{{- $source := include "windlass.name" (dict "settings" .root.Values.source "shard" .shard) -}}
{{- if and .root.Values.singlePod.enabled .root.Values.source.enabled }}
- --artifact-service=https://localhost:9091
{{- else }}
- --artifact-service=https://{{ $source }}.{{ .root.Release.Namespace }}.svc.cluster.local:9091
{{- end }}
- --artifact-token-file=/var/run/secrets/windlass/token
{{- $hosts := list }}
{{- if .root.Values.sharding.shards }}
{{- range $other := without (concat (list "") .root.Values.sharding.shards) .shard }}
{{- $name := include "windlass.name" (dict "settings" $.root.Values.source "shard" $other) }}
{{- $hosts = append $hosts (printf "%s.%s.svc.cluster.local:80" $name $.root.Release.Namespace) }}
{{- end }}
{{- end }}
{{- with $hosts }}
- --artifact-http-hosts={{ join "," . }}
{{- end }}
{{- end }}
{{- define "windlass.tokenVolume" -}}
- name: artifact-token
  projected:
    sources:
      - serviceAccountToken:
          audience: windlass-artifact
          expirationSeconds: 3600
          path: token
{{- end }}
{{- define "windlass.tokenMount" -}}
- name: artifact-token
  mountPath: /var/run/secrets/windlass
  readOnly: true
{{- end }}
