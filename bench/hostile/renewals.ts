/** Repeated renewal of a worker's certificate, from the worker's own address, because limits apply per address. */
import { newCSR } from '../../src/pki/request.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import { Series, type Times } from './series.ts'

/** The trustd to renew with, and the credentials for it. */
export interface Renewing {
  /** Host and port of trustd, such as `10.5.0.2:50001`. */
  readonly address: string
  readonly token: string
  /** PEM of the authority that signed trustd's certificate. */
  readonly ca: string
  readonly milliseconds: number
  /** A process of the worker, whose network namespace is used; without it, the caller's own. */
  readonly from?: number | undefined
}

/** Renews once a second. */
export async function renewals({ from, ...renewing }: Renewing): Promise<Times> {
  if (from === undefined) return repeatedly(renewing)
  const child = Bun.spawn(['nsenter', '-t', String(from), '-n', process.execPath, import.meta.path], {
    stdin: new Blob([JSON.stringify(renewing)]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return (await new Response(child.stdout).json()) as Times
}

async function repeatedly({ address, token, ca, milliseconds }: Renewing): Promise<Times> {
  const end = performance.now() + milliseconds
  const series = new Series()
  while (performance.now() < end) {
    await series.time(async () => {
      const channel = connect({ address, tls: { ca } }, { metadata: { token } })
      try {
        const { csr } = newCSR({ subject: { commonName: 'bench-renewal' }, sans: { dns: ['bench-renewal'] } })
        await channel.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, { deadline: 10_000 })
      } finally {
        channel.close()
      }
    })
    await Bun.sleep(1000)
  }
  return series.times()
}

if (import.meta.main) console.log(JSON.stringify(await repeatedly((await Bun.stdin.json()) as Renewing)))
