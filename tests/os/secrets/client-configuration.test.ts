import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { generateClientConfiguration } from '../../../src/os/secrets/api/client-configuration.ts'
import { OSRootSecret } from '../../../src/os/secrets/resources/os-root-secret.ts'
import { issuedBy, newCA, parseCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { parseTalosconfig } from '../../../src/programs/talosctl/talosconfig/talosconfig.ts'

const { crt, key } = newCA({ subject: { organizations: ['talos'] } })

function ask(request: { roles: string[]; crtTtl?: { seconds: number; nanos: number } }, withKey = true) {
  const store = new Store()
  const ca = { crt: toBase64(crt), key: toBase64(key) }
  store.put(OSRootSecret, 'os', { ...(withKey && { issuingCA: ca }), acceptedCAs: [], certSANIPs: [], certSANDNSNames: [], token: '' })
  const context = { store, log: silent, roles: new Set(['os:admin']), metadata: {}, peer: '', signal: new AbortController().signal }
  return generateClientConfiguration.handle(request as never, context as never) as {
    messages: { crt: Uint8Array; talosconfig: Uint8Array }[]
  }
}

test('a control plane signs a certificate with the requested roles and lifetime', async () => {
  const [message] = ask({ roles: ['os:reader'], crtTtl: { seconds: 3600, nanos: 0 } }).messages
  const certificate = parseCertificate(Buffer.from(message!.crt).toString())
  expect(certificate.subject).toEqual({ organizations: ['os:reader'] })
  expect(issuedBy(certificate, parseCertificate(crt))).toBe(true)
  expect(certificate.notAfter.getTime() - certificate.notBefore.getTime()).toBe(3660_000)
  const config = await parseTalosconfig(Buffer.from(message!.talosconfig).toString())
  expect(config.contexts[config.context]?.crt).toBe(toBase64(Buffer.from(message!.crt).toString()))
})

test.each([
  [{ roles: ['os:king'] }, true, '"os:king" is not a role'],
  [{ roles: [] }, true, 'no roles'],
  [{ roles: ['os:admin'], crtTtl: { seconds: -5, nanos: 0 } }, true, 'not positive'],
  [{ roles: ['os:admin'] }, false, 'this machine holds no authority: ask a control plane'],
])('%j with the key: %p is refused', (request, withKey, message) => {
  expect(() => ask(request, withKey)).toThrow(message)
})
