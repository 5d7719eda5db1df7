import { afterEach, expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { endpointTrouble } from '../../../src/os/diagnosis/endpoint.ts'
import { KubeletSecret } from '../../../src/os/secrets/resources/kubelet-secret.ts'
import { splitUrl } from '../../../src/os/url.ts'
import { newCA, newCertificate, type PemPair, toBase64 } from '../../../src/pki/certificate.ts'
import { config } from '../config/machine.ts'

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

const [ours, theirs] = ['ours', 'theirs'].map((name) => newCA({ subject: { organizations: [name] }, kind: 'ecdsa' })) as [PemPair, PemPair]

/** Probes an endpoint as a node whose kubelet accepts one authority. */
function ask(endpoint: string) {
  const store = new Store()
  store.put(MachineConfig, 'v1alpha1', config('worker').replace('https://10.0.0.1:6443', endpoint))
  store.put(KubeletSecret, 'kubelet', {
    endpoint: splitUrl(endpoint),
    acceptedCAs: [{ crt: toBase64(ours.crt) }],
    bootstrapTokenID: 'abcdef',
    bootstrapTokenSecret: '0123456789abcdef',
  })
  return endpointTrouble({ store, files: { readTextIfThere: () => undefined }, history: { list: () => [] } })
}

/** A TLS server with a certificate of an authority; its port. */
function served(ca: PemPair): number {
  const { crt, key } = newCertificate({
    ca,
    subject: { commonName: 'kube-apiserver' },
    usage: ['serverAuth'],
    lifetime: 1e9,
    kind: 'ecdsa',
  })
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { cert: crt, key }, fetch: () => new Response('') })
  endings.push(() => server.stop(true))
  return server.port!
}

test('an endpoint of the own cluster is no trouble', async () => {
  expect(await ask(`https://127.0.0.1:${served(ours)}`)).toEqual([])
})

test('one that shows a certificate of another authority is named with that authority', async () => {
  const endpoint = `https://127.0.0.1:${served(theirs)}`
  expect(await ask(endpoint)).toMatchObject([
    {
      subject: `certificate of the API server at ${endpoint}`,
      sentence: expect.stringMatching(/another authority "O=theirs".*\(cluster\.ca, cluster\.acceptedCAs\)/),
    },
  ])
})

test('one where nothing listens, and one whose name nobody knows, are named with the reason', async () => {
  expect(await ask('https://127.0.0.1:1')).toMatchObject([
    { subject: 'cluster endpoint https://127.0.0.1:1', sentence: expect.stringContaining('check cluster.controlPlane.endpoint') },
  ])
  expect((await ask('https://no-such-name.invalid:6443'))[0]?.error).toContain('ENOTFOUND')
})

test('one that does not speak TLS is named', async () => {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open: (socket) => void socket.end('hello\n'), data() {} } })
  endings.push(() => server.stop(true))
  expect(await ask(`https://127.0.0.1:${server.port}`)).toHaveLength(1)
})
