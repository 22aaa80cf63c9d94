{{/* Names are those of the release, so that two cities may share a namespace. */}}
{{- define "cityconnect.name" -}}
{{- printf "%s-%s" (.root.Release.Name | trunc 40 | trimSuffix "-") .part -}}
{{- end -}}

{{/* The labels of a part that never change: selectors are immutable. */}}
{{- define "cityconnect.selector" -}}
app.kubernetes.io/name: cityconnect
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "cityconnect.labels" -}}
{{ include "cityconnect.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The image of a program. */}}
{{- define "cityconnect.image" -}}
{{- printf "%s/%s:%s" .root.Values.image.registry .program (.values.tag | default .root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}

{{/* PHOTO_STORE, empty in a city whose reports have no photos. */}}
{{- define "cityconnect.photoStore" -}}
{{- if .Values.photos.volume.enabled -}}
file:///var/lib/cityconnect/photos
{{- else -}}
{{ .Values.photos.store }}
{{- end -}}
{{- end -}}

{{/* The parts that run, as a JSON list: KEDA scales, network policies allow, and
Prometheus scrapes parts of this list alone. */}}
{{- define "cityconnect.parts" -}}
{{- $parts := list "report" "notification" -}}
{{- if include "cityconnect.photoStore" . }}{{ $parts = append $parts "photo" }}{{ end -}}
{{- if .Values.delivery.enabled }}{{ $parts = append $parts "delivery" }}{{ end -}}
{{- toJson $parts -}}
{{- end -}}

{{/* Settings that the profile "restricted" of the Pod Security Standards requires. */}}
{{- define "cityconnect.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .uid }}
  runAsGroup: {{ .uid }}
  fsGroup: {{ .uid }}
  fsGroupChangePolicy: OnRootMismatch # a volume of many photos is not walked
  seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "cityconnect.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* Where pods run, and how urgent they are: for every Deployment. */}}
{{- define "cityconnect.placement" -}}
{{/* Replicas on different machines, and in different zones where there are some.
Those of another revision do not count. */ -}}
topologySpreadConstraints:
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "cityconnect.selector" $ | nindent 8 }}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
terminationGracePeriodSeconds: {{ add .root.Values.drainSeconds 40 }}
{{- end -}}

{{/* At least one replica of a part stays while a machine is drained; one that is
not ready anyway does not hold it up. */}}
{{- define "cityconnect.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "cityconnect.name" . }}
  labels:
    {{- include "cityconnect.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "cityconnect.selector" . | nindent 6 }}
{{- end -}}

{{/* A program: its Deployment, its PodDisruptionBudget, and its Service if others
ask it something. part, program, values, secret, listen (variables and ports),
ports (names and numbers), probed (a port's name), photos (it opens the files). */}}
{{- define "cityconnect.program" -}}
{{- $photoStore := include "cityconnect.photoStore" .root -}}
{{- $volume := .root.Values.photos.volume -}}
{{- $files := .values.secretFiles -}}
{{- if and .photos .root.Values.photos.s3Keys }}{{ $files = concat $files (list "PHOTO_S3_ACCESS_KEY" "PHOTO_S3_SECRET_KEY") }}{{ end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "cityconnect.name" . }}
  labels:
    {{- include "cityconnect.labels" . | nindent 4 }}
spec:
  {{- if not .values.autoscaling.enabled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  minReadySeconds: 10
  revisionHistoryLimit: 5
  strategy:
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels:
      {{- include "cityconnect.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "cityconnect.labels" . | nindent 8 }}
      {{- with .root.Values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "cityconnect.podSecurity" (dict "uid" 65532) | nindent 6 }}
      {{- include "cityconnect.placement" . | nindent 6 }}
      containers:
        - name: {{ .program }}
          image: {{ include "cityconnect.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          {{- include "cityconnect.containerSecurity" . | nindent 10 }}
          env:
            {{- range $variable, $port := .listen }}
            - {name: {{ $variable }}, value: "0.0.0.0:{{ $port }}"}
            {{- end }}
            {{- range $name, $value := merge (deepCopy .values.config) .root.Values.config }}
            - {name: {{ $name }}, value: {{ kindIs "float64" $value | ternary (toJson $value) (toString $value) | quote }}}
            {{- end }}
            {{- range $files }}
            - {name: {{ . }}_FILE, value: /run/secrets/{{ lower . }}}
            {{- end }}
            {{- if and $photoStore (ne .part "delivery") }}
            - {name: PHOTO_STORE, value: {{ $photoStore | quote }}}
            {{- end }}
            {{- if eq .part "notification" }}
            - {name: DRAIN_WINDOW, value: {{ .root.Values.drainSeconds }}s}
            {{- end }}
            {{- if eq .part "delivery" }}
            - {name: REPORT_SERVICE_URL, value: "http://{{ include "cityconnect.name" (dict "root" .root "part" "report") }}:3002"}
            {{- end }}
            {{- with .values.goMemLimit }}
            - {name: GOMEMLIMIT, value: {{ . | quote }}}
            {{- end }}
          ports:
            {{- range $name, $port := .ports }}
            - {name: {{ $name }}, containerPort: {{ $port }}}
            {{- end }}
          # It starts without its servers, and says when it is ready.
          startupProbe:
            httpGet: {path: /livez, port: {{ .probed }}}
            periodSeconds: 1
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /livez, port: {{ .probed }}}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: {{ .probed }}}
            periodSeconds: 3
            timeoutSeconds: 3
            failureThreshold: 2
          lifecycle:
            preStop: {sleep: {seconds: 5}} # until nobody sends new requests here
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          volumeMounts:
            - {name: secrets, mountPath: /run/secrets, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- if and .photos $volume.enabled }}
            - {name: photos, mountPath: /var/lib/cityconnect/photos}
            {{- end }}
            {{- with .values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: secrets
          secret:
            secretName: {{ required (printf "%s.existingSecret: must be the name of a secret with %s" .secretOf (join ", " $files | lower)) .secret }}
            defaultMode: 0440
            items:
              {{- range $files }}
              - {key: {{ lower . }}, path: {{ lower . }}}
              {{- end }}
        - {name: tmp, emptyDir: {sizeLimit: 64Mi}}
        {{- if and .photos $volume.enabled }}
        - name: photos
          persistentVolumeClaim:
            claimName: {{ $volume.existingClaim | default (include "cityconnect.name" (dict "root" .root "part" "photos")) }}
        {{- end }}
        {{- with .values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
---
{{ include "cityconnect.budget" . }}
{{- if .ports.http }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "cityconnect.name" . }}
  labels:
    {{- include "cityconnect.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "cityconnect.selector" . | nindent 4 }}
  ports:
    - {name: http, port: {{ .ports.http }}, targetPort: http, appProtocol: http}
{{- end }}
{{- end -}}

{{/* Allowed connections to one kind of servers: ports and addresses. */}}
{{- define "cityconnect.egress" -}}
- ports: [{{ range $i, $port := .ports }}{{ if $i }}, {{ end }}{port: {{ $port }}}{{ end }}]
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
