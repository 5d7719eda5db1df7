import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { parseSecrets } from '../../../../../src/os/config/generate/secrets.ts'
import { fromBase64, newCA } from '../../../../../src/pki/certificate.ts'
import { newKey, parseKey } from '../../../../../src/pki/key.ts'
import { parseTalosconfig } from '../../../../../src/programs/talosctl/talosconfig/talosconfig.ts'
import { run } from '../../../../../src/programs/talosctl/talosctl.ts'
import { textIo } from '../../text-io.ts'

// Keys of RSA take as long as they take; a test that is given up would go on writing, and no longer into the folder.
setDefaultTimeout(120_000)
let folder = ''
const before = process.cwd()
beforeAll(() => {
  folder = mkdtempSync('/tmp/gen-')
  process.chdir(folder)
})
afterAll(() => {
  process.chdir(before)
  rmSync(folder, { recursive: true })
})

const talosctl = async (...args: string[]) => {
  const io = textIo({ now: new Date() })
  const code = await run(args, io)
  return { code, out: io.out, err: io.err }
}

test('secrets, then configurations that pass their own validation, for their owner alone', async () => {
  expect(await talosctl('gen', 'secrets')).toEqual({ code: 0, out: '', err: '' })
  expect((await talosctl('gen', 'secrets')).err).toBe('file "secrets.yaml" is there already: use --force to overwrite it\n')
  const { certs } = parseSecrets(readFileSync('secrets.yaml', 'utf8'))
  const account = parseKey(fromBase64(certs.k8sserviceaccount.key))
  expect(account.private.asymmetricKeyDetails?.modulusLength).toBe(4096)
  const made = await talosctl(
    'gen',
    'config',
    'demo',
    'https://10.5.0.1:6443',
    '--with-secrets',
    'secrets.yaml',
    '--config-patch',
    'machine: {sysctls: {a.b: 1}}',
  )
  expect(made).toEqual({ code: 0, out: '', err: 'Created controlplane.yaml\nCreated worker.yaml\nCreated talosconfig\n' })
  for (const name of ['controlplane.yaml', 'worker.yaml', 'talosconfig', 'secrets.yaml']) expect(statSync(name).mode & 0o777).toBe(0o600)
  for (const mode of ['metal', 'cloud', 'container']) {
    const { code, out, err } = await talosctl('validate', '-c', 'controlplane.yaml', '-m', mode, '--strict')
    expect({ code, out, err }).toEqual({ code: 0, out: `controlplane.yaml is valid for ${mode} mode\n`, err: '' })
  }
  expect(readFileSync('worker.yaml', 'utf8')).toContain('a.b: 1\n')
  expect((await parseTalosconfig(readFileSync('talosconfig', 'utf8'))).context).toBe('demo')
})

test('nothing is made for files that are there already', async () => {
  writeFileSync('there.crt', '')
  const refused = (file: string) => `file "${file}" is there already: use --force to overwrite it\n`
  for (const [file, ...args] of [
    ['secrets.yaml', 'secrets', '--from-kubernetes-pki', 'none'],
    ['controlplane.yaml', 'config', 'demo', 'https://10.5.0.1:6443'],
    ['there.crt', 'ca', '--organization', 'there', '--rsa'],
  ])
    expect(await talosctl('gen', ...args)).toEqual({ code: 1, out: '', err: refused(file!) })
})

test('secrets with the keys of Kubernetes have a new key for everything else', async () => {
  const account = newKey('ecdsa').pem
  for (const name of ['ca', 'front-proxy-ca', 'etcd/ca']) {
    mkdirSync(`pki/${name}/..`, { recursive: true })
    const { crt, key } = newCA({ subject: {}, kind: 'ecdsa' })
    writeFileSync(`pki/${name}.crt`, crt)
    writeFileSync(`pki/${name}.key`, key)
  }
  writeFileSync('pki/sa.key', account)
  const { code, out } = await talosctl('gen', 'secrets', '-p', 'pki', '-t', 'abcdef.0123456789abcdef', '-o', '-')
  expect(code).toBe(0)
  const { certs, secrets } = parseSecrets(out)
  expect(fromBase64(certs.k8sserviceaccount.key)).toBe(account)
  expect(fromBase64(certs.k8s.crt)).toBe(readFileSync('pki/ca.crt', 'utf8'))
  expect(fromBase64(certs.etcd.key)).toBe(readFileSync('pki/etcd/ca.key', 'utf8'))
  expect(secrets.bootstraptoken).toBe('abcdef.0123456789abcdef')
  expect(certs.os.crt).not.toBe('')
})

test('secrets taken from a control plane make the same configuration', async () => {
  await talosctl('gen', 'secrets', '--from-controlplane-config', 'controlplane.yaml', '-o', 'again.yaml')
  expect(readFileSync('again.yaml', 'utf8')).toBe(readFileSync('secrets.yaml', 'utf8'))
  expect((await talosctl('gen', 'secrets', '--from-controlplane-config', 'worker.yaml', '-o', '-')).err).toContain(
    'use the one of a control plane',
  )
})

test('one document goes to standard output, without comments on request', async () => {
  const args = ['gen', 'config', 'demo', 'https://10.5.0.1:6443', '--with-secrets', 'secrets.yaml', '-t', 'worker', '-o', '-']
  const { out } = await talosctl(...args, '--with-docs=false', '--with-examples=false')
  expect(out).toStartWith('version: v1alpha1\ndebug: false\nmachine:\n  type: worker\n')
  expect(out).not.toContain('#')
  expect((await talosctl(...args)).out).toContain('type: worker # The type of the machine')
})

test.each([
  [['demo', '10.0.0.1'], '"10.0.0.1" is not a URL: did you mean "https://10.0.0.1:6443"?'],
  [['demo', 'http://10.0.0.1:6443'], '"http://10.0.0.1:6443" is not an endpoint'],
  [['demo', 'https://a:6443', '--kubernetes-version', 'new'], '"new" is not a version of Kubernetes'],
  [['demo', 'https://a:6443', '-t', 'boss'], 'unknown output type "boss"'],
  [['demo', 'https://a:6443', '--config-patch', '@nope'], 'read patch "nope": ENOENT'],
  [
    ['demo', 'https://a:6443', '--with-secrets', 'secrets.yaml', '-o', 'x/', '--config-patch', 'machine: {typ: x}'],
    'unknown key "typ", did you mean "type"?',
  ],
  [['demo', 'https://a:6443', '--registry-mirror', 'docker.io'], 'want "registry=url"'],
])('gen config %j is refused', async (args, message) => {
  const { code, err } = await talosctl('gen', 'config', ...args)
  expect(code).toBe(1)
  expect(err).toContain(message)
})

test('validate reports every error with its position', async () => {
  writeFileSync('bad.yaml', 'machine:\n  typ: worker\n  kubelet: 5\n')
  expect(await talosctl('validate', '-c', 'bad.yaml', '-m', 'metal')).toEqual({
    code: 1,
    out: '',
    err: 'line 2, column 3, document v1alpha1: machine.typ: unknown key "typ", did you mean "type"?\nline 3, column 12, document v1alpha1: machine.kubelet: expected map, got 5\n',
  })
  expect((await talosctl('validate', '-c', 'bad.yaml', '-m', 'moon')).err).toBe('unknown mode "moon": there are metal, cloud, container\n')
})

test('machineconfig patch writes the result and keeps comments', async () => {
  writeFileSync('in.yaml', '# this one\nmachine:\n  type: worker # and this\n')
  writeFileSync('patch.yaml', 'machine:\n  certSANs: [a]\n')
  expect(
    (await talosctl('mc', 'patch', 'in.yaml', '-p', '@patch.yaml', '--patch', '[{"op":"add","path":"/machine/certSANs/-","value":"b"}]'))
      .out,
  ).toBe('# this one\nmachine:\n  type: worker # and this\n  certSANs:\n    - a\n    - b\n')
  expect((await talosctl('machineconfig', 'patch', 'in.yaml')).err).toBe('name the patch with --patch\n')
})

test('ca, key, csr and crt work together, and openssl agrees', async () => {
  for (const args of [
    ['ca', '--organization', 'org'],
    ['key', '--name', 'me'],
    ['csr', '--key', 'me.key', '--ip', '127.0.0.1', '--roles', 'os:reader'],
    ['crt', '--ca', 'org', '--csr', 'me.csr', '--name', 'me'],
    ['keypair', '--organization', 'pair', '--ip', '10.0.0.1'],
  ]) {
    expect(await talosctl('gen', ...args)).toEqual({ code: 0, out: '', err: '' })
  }
  expect(readdirSync('.')).toEqual(
    expect.arrayContaining(['org.crt', 'org.key', 'org.sha256', 'me.key', 'me.csr', 'me.crt', 'pair.crt', 'pair.key']),
  )
  const openssl = (...args: string[]) => execFileSync('openssl', args, { encoding: 'utf8' })
  expect(openssl('verify', '-purpose', 'sslclient', '-CAfile', 'org.crt', 'me.crt')).toBe('me.crt: OK\n')
  expect(openssl('x509', '-in', 'me.crt', '-noout', '-subject')).toBe('subject=O = os:reader\n')
  expect(openssl('x509', '-in', 'pair.crt', '-noout', '-ext', 'subjectAltName')).toContain('IP Address:10.0.0.1')
  expect(readFileSync('org.sha256', 'utf8')).toMatch(/^sha256:[0-9a-f]{64}$/)
})

test('keys for signed images, and the variables that enroll them', async () => {
  expect(await talosctl('gen', 'secureboot', 'uki')).toEqual({ code: 0, out: '', err: '' })
  expect(await talosctl('gen', 'secureboot', 'pcr')).toEqual({ code: 0, out: '', err: '' })
  expect(await talosctl('gen', 'secureboot', 'database')).toEqual({ code: 0, out: '', err: '' })
  const modes = readdirSync('_out').map((name) => [name, statSync(`_out/${name}`).mode & 0o777])
  expect(Object.fromEntries(modes)).toEqual({
    'KEK.auth': 0o644,
    'PK.auth': 0o644,
    'db.auth': 0o644,
    'pcr-signing-key.pem': 0o600,
    'uki-signing-cert.der': 0o644,
    'uki-signing-cert.pem': 0o644,
    'uki-signing-key.pem': 0o600,
  })
  expect((await talosctl('gen', 'secureboot', 'uki')).err).toContain('is there already: use --force')
  expect((await talosctl('gen', 'secureboot', 'database', '--signing-key', 'none.pem')).err).toBe(
    'read "none.pem": ENOENT: make it with "talosctl gen secureboot uki", or name another file\n',
  )
})

test('no output at all is an error', async () => {
  const { code, out, err } = await talosctl('gen', 'config', 'none', 'https://10.5.0.1:6443', '--output-types', '')
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain('--output-types names no output: there are controlplane, worker, talosconfig')
})
