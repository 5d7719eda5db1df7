import { expect, test } from 'bun:test'
import { requestClientCertificate } from '../../../../src/os/k8s/kubelet/bootstrap.ts'
import { newCA, type PemPair, parseCertificate, signedBy, year } from '../../../../src/pki/certificate.ts'
import { signCSR } from '../../../../src/pki/request.ts'

/** An API server that signs each request with the next of these authorities, the last one for all that follow. */
function signing(...authorities: PemPair[]) {
  const issued: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (request.method === 'POST') {
        const { spec } = (await request.json()) as { spec: { request: string } }
        const ca = authorities[Math.min(issued.length, authorities.length - 1)]!
        issued.push(signCSR(Buffer.from(spec.request, 'base64').toString(), { ca, usage: ['clientAuth'], lifetime: year }))
        return Response.json({ metadata: { name: String(issued.length - 1) } })
      }
      const crt = issued[Number(request.url.split('/').at(-1))] ?? ''
      return Response.json({ metadata: { name: 'x' }, status: { certificate: Buffer.from(crt).toString('base64') } })
    },
  })
  return { issued, url: `http://127.0.0.1:${server.port}`, close: () => server.stop(true) }
}

const [old, next] = [0, 1].map(() => newCA({ subject: { organizations: ['kubernetes'] }, kind: 'ecdsa' })) as [PemPair, PemPair]
const options = { signal: new AbortController().signal, delay: 1 }

test('a certificate that the cluster still signs with a dropped authority is requested again', async () => {
  const cluster = signing(old, old, next)
  const access = { server: cluster.url, ca: next.crt, token: 't' }
  const troubles: unknown[] = []
  const { crt } = await requestClientCertificate(access, 'n1', { ...options, timeout: 60_000, report: (error) => troubles.push(error) })
  expect(signedBy(crt, next.crt)).toBe(true)
  expect(parseCertificate(crt).subject.commonName).toBe('system:node:n1')
  expect(cluster.issued).toHaveLength(3)
  expect(String(troubles.at(-1))).toContain('authority that is not accepted here')
  await cluster.close()
})

test('a timeout states why there is no certificate', async () => {
  const cluster = signing(old)
  const access = { server: cluster.url, ca: next.crt, token: 't' }
  await expect(requestClientCertificate(access, 'n1', { ...options, timeout: 0 })).rejects.toThrow('authority that is not accepted here')
  await cluster.close()
})
