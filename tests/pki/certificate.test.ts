import { expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type TLSSocket } from 'node:tls'
import {
  day,
  dueForRenewal,
  fingerprint,
  fromBase64,
  issuedBy,
  matches,
  newCA,
  newCertificate,
  parseCertificate,
  parseCertificates,
  renewalTime,
  toBase64,
} from '../../src/pki/certificate.ts'
import { newRsaKey, parseKey, tlsKey } from '../../src/pki/key.ts'
import { newCSR, parseCSR, signCSR } from '../../src/pki/request.ts'

const osCA = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const k8sCA = newCA({ subject: { organizations: ['kubernetes'] }, kind: 'ecdsa' })
const server = (ca = osCA) =>
  newCertificate({
    ca,
    subject: { commonName: 'node-1' },
    sans: { dns: ['node-1', 'localhost'], ips: ['127.0.0.1', '10.5.0.2', 'fd00::1'] },
    usage: ['serverAuth'],
    lifetime: day,
  })
const client = (ca = osCA, role = 'os:admin') =>
  newCertificate({ ca, subject: { organizations: [role] }, usage: ['clientAuth'], lifetime: day })

function inFiles<T>(files: Record<string, string>, run: (directory: string) => T): T {
  const directory = mkdtempSync('/tmp/pki-')
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(`${directory}/${name}`, content)
    return run(directory)
  } finally {
    rmSync(directory, { recursive: true })
  }
}

const openssl = (directory: string, ...args: string[]) => execFileSync('openssl', args, { cwd: directory, encoding: 'utf8', stdio: 'pipe' })

test('openssl verifies the chains and prints the requested names', () => {
  const pair = server(k8sCA)
  inFiles({ 'ca.crt': k8sCA.crt, 'os.crt': osCA.crt, 'k8s.crt': pair.crt, 'node.crt': server().crt, 'node.key': pair.key }, (directory) => {
    expect(openssl(directory, 'verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', 'ca.crt', 'k8s.crt')).toBe('k8s.crt: OK\n')
    expect(openssl(directory, 'verify', '-purpose', 'sslserver', '-CAfile', 'os.crt', 'node.crt')).toBe('node.crt: OK\n')
    const shown = openssl(directory, 'x509', '-in', 'node.crt', '-noout', '-text')
    expect(shown).toContain('Issuer: O = talos')
    expect(shown).toContain('Subject: CN = node-1')
    expect(shown).toMatch(/Key Usage: critical\s+Digital Signature\n/)
    expect(shown).toMatch(/Extended Key Usage: \n\s+TLS Web Server Authentication\n/)
    expect(shown).toContain('DNS:node-1, DNS:localhost, IP Address:127.0.0.1, IP Address:10.5.0.2, IP Address:FD00:0:0:0:0:0:0:1')
    const root = openssl(directory, 'x509', '-in', 'os.crt', '-noout', '-text')
    expect(root).toMatch(/Key Usage: critical\s+Digital Signature, Certificate Sign\n/)
    expect(root).toMatch(/Extended Key Usage: \n\s+TLS Web Server Authentication, TLS Web Client Authentication\n/)
    expect(root).toMatch(/Basic Constraints: critical\s+CA:TRUE/)
    expect(openssl(directory, 'ec', '-in', 'node.key', '-noout', '-check')).toBeDefined()
  })
})

test('an authority may have an empty subject, and its certificates verify', () => {
  const ca = newCA({ subject: {}, kind: 'ecdsa' })
  const pair = newCertificate({ ca, subject: { commonName: 'front-proxy-client' }, usage: ['clientAuth'], lifetime: day })
  inFiles({ 'ca.crt': ca.crt, 'leaf.crt': pair.crt }, (directory) => {
    expect(openssl(directory, 'verify', '-purpose', 'sslclient', '-CAfile', 'ca.crt', 'leaf.crt')).toBe('leaf.crt: OK\n')
  })
})

test('keys have the PEM labels of their kinds and parse to the same key', async () => {
  expect(osCA.key).toStartWith('-----BEGIN ED25519 PRIVATE KEY-----\n')
  expect(k8sCA.key).toStartWith('-----BEGIN EC PRIVATE KEY-----\n')
  const rsa = await newRsaKey(1024)
  expect(rsa.pem).toStartWith('-----BEGIN RSA PRIVATE KEY-----\n')
  for (const pem of [osCA.key, k8sCA.key, rsa.pem]) expect(parseKey(pem).pem).toBe(pem)
  expect(matches(osCA)).toBe(true)
  expect(matches({ crt: osCA.crt, key: k8sCA.key })).toBe(false)
})

test('a parsed certificate has the fields it was created with', () => {
  const now = new Date('2026-03-01T12:00:00Z')
  const { crt } = newCertificate({
    ca: osCA,
    subject: { commonName: 'a', organizations: ['os:reader', 'os:admin'] },
    sans: { dns: ['x.example'], ips: ['::1', '2001:db8::5:0:0:1'] },
    usage: ['serverAuth', 'clientAuth'],
    lifetime: day,
    now,
  })
  const read = parseCertificate(crt)
  expect(read.subject.commonName).toBe('a')
  expect(read.subject.organizations?.toSorted()).toEqual(['os:admin', 'os:reader'])
  expect(read.issuer).toEqual({ organizations: ['talos'] })
  expect(read.extensions).toMatchObject({
    isCA: false,
    keyUsage: ['digitalSignature'],
    extendedKeyUsage: ['serverAuth', 'clientAuth'],
    altNames: { dns: ['x.example'], ips: ['::1', '2001:db8::5:0:0:1'] },
  })
  expect(read.notAfter).toEqual(new Date('2026-03-02T12:00:00Z'))
  expect(issuedBy(read, parseCertificate(osCA.crt))).toBe(true)
  expect(parseCertificates(crt + osCA.crt)).toHaveLength(2)
  expect(fromBase64(toBase64(crt))).toBe(crt)
  expect(fingerprint(crt)).toMatch(/^[A-Za-z0-9+/]{43}=$/)
})

test('a signature by another authority of the same name is not accepted', () => {
  const other = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  expect(issuedBy(parseCertificate(server(other).crt), parseCertificate(osCA.crt))).toBe(false)
})

test('renewal is due at half of the lifetime, and when the clock was set back', () => {
  const now = new Date('2026-03-01T12:00:00Z')
  const { crt } = newCertificate({ ca: osCA, subject: { commonName: 'a' }, usage: ['serverAuth'], lifetime: day, now })
  const half = renewalTime(crt).getTime()
  expect(Math.abs(half - now.getTime() - day / 2)).toBeLessThanOrEqual(60_000)
  expect(dueForRenewal(crt, new Date(half - 1))).toBe(false)
  expect(dueForRenewal(crt, new Date(half))).toBe(true)
  expect(dueForRenewal(crt, new Date(now.getTime() - day))).toBe(true)
})

test('a request is created, verified by openssl, and signed with the usage of the signer', () => {
  const { csr, key } = newCSR({
    subject: { commonName: 'worker', organizations: ['os:admin'] },
    sans: { dns: ['worker'], ips: ['10.5.0.3'] },
  })
  inFiles({ 'a.csr': csr }, (directory) => openssl(directory, 'req', '-in', 'a.csr', '-noout', '-verify'))
  expect(parseCSR(csr).extensions.altNames).toEqual({ dns: ['worker'], ips: ['10.5.0.3'] })
  const crt = signCSR(csr, { ca: osCA, usage: ['serverAuth'], lifetime: day, subject: ({ commonName }) => ({ commonName }) })
  const read = parseCertificate(crt)
  expect(read.subject).toEqual({ commonName: 'worker' })
  expect(read.extensions.extendedKeyUsage).toEqual(['serverAuth'])
  expect(read.extensions.altNames).toEqual({ dns: ['worker'], ips: ['10.5.0.3'] })
  expect(matches({ crt, key })).toBe(true)
})

test('a request that was tampered with is refused', () => {
  const { csr } = newCSR({ subject: { commonName: 'worker' } })
  const lines = csr.split('\n')
  const der = Buffer.from(lines.slice(1, -2).join(''), 'base64')
  der[der.indexOf('worker')] = 'W'.charCodeAt(0)
  expect(() => parseCSR(`${lines[0]}\n${der.toString('base64')}\n${lines.at(-2)}\n`)).toThrow('its signature does not verify')
})

interface Handshake {
  clientSaw: string
  serverSaw: string
}

function handshake(serverPair: { crt: string; key: string }, clientPair: { crt: string; key: string }, ca = osCA.crt): Promise<Handshake> {
  return new Promise((resolve) => {
    const listener = createServer(
      { cert: serverPair.crt, key: tlsKey(serverPair.key), ca, requestCert: true, rejectUnauthorized: false, minVersion: 'TLSv1.3' },
      (socket: TLSSocket) => {
        const serverSaw = socket.authorized ? String(socket.getPeerCertificate().subject.O) : 'refused'
        socket.end(serverSaw)
      },
    )
    listener.listen(0, '127.0.0.1', () => {
      const { port } = listener.address() as { port: number }
      const socket = connect({ port, host: '127.0.0.1', ca, cert: clientPair.crt, key: tlsKey(clientPair.key) })
      let serverSaw = ''
      const done = (clientSaw: string) => {
        listener.close()
        resolve({ clientSaw, serverSaw })
      }
      socket.on('data', (chunk: Buffer) => {
        serverSaw += chunk
      })
      socket.on('end', () => done(socket.authorized ? 'authorized' : 'refused'))
      socket.on('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
    })
  })
}

test('both sides of a TLS 1.3 connection accept each other', async () => {
  expect(await handshake(server(), client())).toEqual({ clientSaw: 'authorized', serverSaw: 'os:admin' })
})

test('a client of another authority with the same subject is not authorized', async () => {
  const other = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  expect((await handshake(server(), client(other))).serverSaw).toBe('refused')
})
