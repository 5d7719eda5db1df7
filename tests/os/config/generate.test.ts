import { expect, test } from 'bun:test'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import { formatSecrets, newSecrets, parseSecrets, pemOf, secretsOf } from '../../../src/os/config/generate/secrets.ts'
import { newClientConfig } from '../../../src/os/config/generate/talosconfig.ts'
import { HostnameConfig } from '../../../src/os/network/documents/hostname.ts'
import { fromBase64, issuedBy, matches, parseCertificate } from '../../../src/pki/certificate.ts'
import { newRsaKey, parseKey } from '../../../src/pki/key.ts'

// A short key is made in a tenth of the time; `talosctl gen secrets` is tried with the usual one.
const secrets = await newSecrets({ serviceAccount: newRsaKey(1024) })
const options = { clusterName: 'demo', endpoint: 'https://10.5.0.1:6443', secrets }

test('what is generated passes its own validation in every mode', () => {
  for (const type of ['controlplane', 'worker'] as const) {
    for (const mode of ['metal', 'cloud', 'container'] as const)
      expect(generate(type, options).validate(mode)).toEqual({ errors: [], warnings: [] })
    expect(generate(type, { ...options, install: false }).validate('container').errors).toEqual([])
    const wide = {
      ...options,
      kubespan: true,
      discovery: true,
      nameservers: ['10.5.0.1'],
      registryMirrors: { 'docker.io': ['http://10.5.0.1:5000'] },
    }
    expect(generate(type, { ...wide, discoveryEndpoint: 'http://10.5.0.1:3000', cni: { name: 'none' } }).validate('metal')).toEqual({
      errors: [],
      warnings: [],
    })
  }
})

test('a worker holds no key of any authority', () => {
  const text = generate('worker', options).toString()
  for (const { key } of [
    secrets.certs.os,
    secrets.certs.k8s,
    secrets.certs.etcd,
    secrets.certs.k8saggregator,
    secrets.certs.k8sserviceaccount,
  ]) {
    expect(text).not.toContain(key)
  }
  expect(text).not.toContain(secrets.secrets.secretboxencryptionsecret!)
})

test('secrets come back from a control plane, and from their own file', () => {
  expect(secretsOf(generate('controlplane', options))).toEqual(secrets)
  expect(parseSecrets(formatSecrets(secrets))).toEqual(secrets)
  expect(() => secretsOf(generate('worker', options))).toThrow('machine.ca.key')
})

test('secrets have the kinds and names that are expected of them', () => {
  for (const [name, kind, organization] of [
    ['os', 'ed25519', 'talos'],
    ['k8s', 'ecdsa', 'kubernetes'],
    ['etcd', 'ecdsa', 'etcd'],
    ['k8saggregator', 'ecdsa', undefined],
  ] as const) {
    const pair = pemOf(secrets.certs[name])
    expect(matches(pair)).toBe(true)
    expect(parseKey(pair.key).kind).toBe(kind)
    expect(parseCertificate(pair.crt).subject).toEqual(organization ? { organizations: [organization] } : {})
  }
  expect(parseKey(fromBase64(secrets.certs.k8sserviceaccount.key)).kind).toBe('rsa')
  expect(secrets.trustdinfo.token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/)
  expect(Buffer.from(secrets.cluster.secret, 'base64')).toHaveLength(32)
  expect(Buffer.from(secrets.cluster.id, 'base64url')).toHaveLength(32)
})

test('patches apply to all machines or to one kind, in order', () => {
  const patches = {
    all: ['machine:\n  network:\n    nameservers: [1.1.1.1]\n', '[{"op": "add", "path": "/machine/sysctls", "value": {"a.b": "1"}}]'],
    controlPlane: ['cluster:\n  allowSchedulingOnControlPlanes: true\n'],
    worker: ['apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: worker-1\n'],
  }
  const controlPlane = generate('controlplane', options, patches)
  const worker = generate('worker', options, patches)
  for (const config of [controlPlane, worker]) {
    expect(config.v1alpha1?.machine?.network?.nameservers).toEqual(['1.1.1.1'])
    expect(config.v1alpha1?.machine?.sysctls).toEqual({ 'a.b': '1' })
    expect(ConfigContainer.parse(config.toString()).documents).toHaveLength(2)
  }
  expect(controlPlane.v1alpha1?.cluster?.allowSchedulingOnControlPlanes).toBe(true)
  expect(worker.v1alpha1?.cluster?.allowSchedulingOnControlPlanes).toBeUndefined()
  expect(worker.find(HostnameConfig)).toMatchObject({ hostname: 'worker-1', auto: 'off' })
})

test('a client configuration holds a certificate of the cluster with the roles', () => {
  const { context, contexts } = newClientConfig(secrets.certs.os, { clusterName: 'demo', endpoints: ['10.5.0.2'], roles: ['os:reader'] })
  expect(context).toBe('demo')
  const { crt, ca, endpoints } = contexts.demo!
  expect(endpoints).toEqual(['10.5.0.2'])
  const certificate = parseCertificate(fromBase64(crt))
  expect(certificate.subject).toEqual({ organizations: ['os:reader'] })
  expect(certificate.extensions).toMatchObject({ extendedKeyUsage: ['clientAuth'], keyUsage: ['digitalSignature'] })
  expect(issuedBy(certificate, parseCertificate(fromBase64(ca)))).toBe(true)
})

test('an endpoint that is not a URL is refused', () => {
  expect(() => generate('worker', { ...options, endpoint: '10.0.0.1' })).toThrow('"10.0.0.1" is not an endpoint')
})
