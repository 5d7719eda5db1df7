import * as v from 'valibot'
import { argument, certificateAndKey, listOf, mapOf, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { isSubnet } from '../../network/documents/subnet.ts'

/** `cluster.etcd`. */
export const etcd = section({
  image: v.pipe(text, v.description("etcd's image.")),
  ca: v.pipe(certificateAndKey, v.description('The authority of etcd.')),
  extraArgs: v.pipe(mapOf(argument), v.description('Flags for etcd.')),
  subnet: text,
  advertisedSubnets: v.pipe(
    listOf(text),
    v.description('Which networks the advertised address may be taken from.'),
    v.metadata({ example: ['10.0.0.0/8'] }),
  ),
  listenSubnets: v.pipe(listOf(text), v.description('Which networks etcd listens on.')),
})

/** Rules of the section. */
export function etcdRules(section: v.InferOutput<typeof etcd> | undefined, report: Reporter, isWorker: boolean): void {
  if (!section) return
  if (isWorker) report.error(['cluster', 'etcd'], 'only control planes run etcd')
  if (section.subnet && section.advertisedSubnets?.length)
    report.error(['cluster', 'etcd', 'subnet'], 'subnet and advertisedSubnets exclude each other')
  for (const key of ['advertisedSubnets', 'listenSubnets'] as const) {
    for (const [index, subnet] of (section[key] ?? []).entries()) {
      if (!isSubnet(subnet)) report.error(['cluster', 'etcd', key, index], `${JSON.stringify(subnet)} is not a subnet or address`)
    }
  }
}
