import { fromBase64, parseCertificate } from '../../../../pki/certificate.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { relativeTime } from '../../output/relative-time.ts'
import { contextOf, openTalosconfig } from '../../talosconfig/file.ts'
import type { ConfigFlags } from './config.ts'

/** Shows who the current context is and for how long. */
export async function showInfo(io: Io, flags: ConfigFlags, { output }: { output: string }): Promise<void> {
  if (!['text', 'json', 'yaml'].includes(output)) throw new UsageError(`unknown output format "${output}": use text, json or yaml`)
  const file = await openTalosconfig(io, flags.talosconfig)
  const { name, context } = contextOf(file, flags.context)
  const certificate = context.crt ? parseCertificate(fromBase64(context.crt)) : undefined
  const info = {
    context: name,
    nodes: context.nodes,
    endpoints: context.endpoints,
    roles: (certificate?.subject.organizations ?? []).toSorted(),
    certTTL: certificate ? relativeTime(certificate.notAfter, io.now()) : '',
    certNotAfter: certificate ? certificate.notAfter.toISOString().slice(0, 10) : '',
  }
  if (output === 'json') io.stdout.write(`${JSON.stringify(info, null, 2)}\n`)
  else if (output === 'yaml') io.stdout.write((await import('yaml')).stringify(info))
  else {
    const words = (list: string[]) => list.join(', ') || 'not defined'
    io.stdout.write(`Current context:     ${info.context}\n`)
    io.stdout.write(`Nodes:               ${words(info.nodes)}\n`)
    io.stdout.write(`Endpoints:           ${words(info.endpoints)}\n`)
    io.stdout.write(`Roles:               ${words(info.roles)}\n`)
    io.stdout.write(`Certificate expires: ${certificate ? `${info.certTTL} (${info.certNotAfter})` : 'not defined'}\n`)
  }
}
