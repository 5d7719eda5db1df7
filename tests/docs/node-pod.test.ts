/** docs/manifests/node-pod.yaml: objects of Kubernetes without unknown fields, with what the image needs and the page describes. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { parseAllDocuments } from 'yaml'
import { diskDirectories } from '../../src/programs/node-supervisor/container-spec.ts'
import { nodeImage } from '../../src/release.ts'

const docs = join(import.meta.dir, '../../docs')
const page = readFileSync(join(docs, 'clusters.md'), 'utf8')

const name = v.pipe(v.string(), v.regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/))
const labels = v.record(v.string(), v.pipe(v.string(), v.regex(/^[\w.-]{1,63}$/)))
const quantity = v.pipe(v.string(), v.regex(/^\d+(m|[KMG]i)?$/))
const metadata = v.strictObject({ name, namespace: name, labels: v.optional(labels) })
const port = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(65_535))

const container = v.strictObject({
  name,
  image: v.string(),
  securityContext: v.strictObject({ privileged: v.literal(true) }),
  env: v.tuple([
    v.strictObject({
      name: v.literal('USERDATA'),
      valueFrom: v.strictObject({ secretKeyRef: v.strictObject({ name, key: v.literal('userdata') }) }),
    }),
  ]),
  ports: v.array(v.strictObject({ name, containerPort: port })),
  readinessProbe: v.strictObject({ tcpSocket: v.strictObject({ port: name }) }),
  resources: v.strictObject({
    requests: v.strictObject({ cpu: quantity, memory: quantity }),
    limits: v.strictObject({ memory: quantity }),
  }),
  volumeMounts: v.array(v.strictObject({ name, mountPath: v.string(), subPath: name })),
})

const pod = v.strictObject({
  apiVersion: v.literal('v1'),
  kind: v.literal('Pod'),
  metadata,
  spec: v.strictObject({
    restartPolicy: v.literal('OnFailure'),
    terminationGracePeriodSeconds: v.number(),
    automountServiceAccountToken: v.literal(false),
    enableServiceLinks: v.literal(false),
    containers: v.tuple([container]),
    volumes: v.tuple([
      v.strictObject({ name: v.literal('memory'), emptyDir: v.strictObject({ medium: v.literal('Memory') }) }),
      v.strictObject({ name: v.literal('disk'), emptyDir: v.strictObject({}) }),
    ]),
  }),
})

const manifest = v.tuple([
  v.strictObject({ apiVersion: v.literal('v1'), kind: v.literal('Namespace'), metadata: v.strictObject({ name, labels }) }),
  v.strictObject({
    apiVersion: v.literal('v1'),
    kind: v.literal('Service'),
    metadata,
    spec: v.strictObject({
      publishNotReadyAddresses: v.literal(true),
      selector: labels,
      ports: v.array(v.strictObject({ name, port })),
    }),
  }),
  pod,
  pod,
])

const documents = parseAllDocuments(readFileSync(join(docs, 'manifests/node-pod.yaml'), 'utf8'))
const [namespace, service, ...pods] = v.parse(
  manifest,
  documents.map((each) => each.toJS()),
)

test('the namespace admits privileged pods, and everything is in it', () => {
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  expect(namespace.metadata.labels).toEqual({ 'pod-security.kubernetes.io/enforce': 'privileged' })
  for (const { metadata } of [service, ...pods]) expect(metadata.namespace).toBe(namespace.metadata.name)
})

test('the service is in front of the control plane alone, with its two ports', () => {
  const selected = pods.filter(({ metadata }) =>
    Object.entries(service.spec.selector).every(([key, value]) => metadata.labels?.[key] === value),
  )
  expect(selected.map(({ metadata }) => metadata.name)).toEqual(['controlplane-1'])
  expect(service.spec.ports.map(({ port }) => port)).toEqual(
    selected.flatMap(({ spec }) => spec.containers[0].ports.map((each) => each.containerPort)),
  )
})

test.each(pods)('$metadata.name runs the image of this release with a volume for all that a node writes', ({ spec }) => {
  const [node] = spec.containers
  expect(node.image).toBe(`${nodeImage.repository}:${nodeImage.tag}`)
  expect(node.ports.map((each) => each.name)).toContain(node.readinessProbe.tcpSocket.port)
  const on = (volume: string) =>
    node.volumeMounts.filter((each) => each.name === volume).map(({ mountPath, subPath }) => [mountPath, subPath])
  expect(on('disk').sort()).toEqual(diskDirectories.map(({ target, source }) => [target, source]).sort())
  expect(on('memory').sort()).toEqual(['/run', '/system', '/tmp'].map((path) => [path, path.slice(1)]))
  // As long as `cluster stop` waits for a node (docs/operating.md), and no less.
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(75)
})

test('the page names the manifest, the endpoint and the secrets of the pods', () => {
  expect(page).toContain('docs/manifests/node-pod.yaml')
  expect(page).toContain(`https://${service.metadata.name}.${namespace.metadata.name}.svc.cluster.local:6443`)
  for (const { spec } of pods) expect(page).toContain(`create secret generic ${spec.containers[0].env[0].valueFrom.secretKeyRef.name} `)
})
