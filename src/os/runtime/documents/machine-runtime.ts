/** Sections of `machine` about the kernel, logs and the environment. */
import * as v from 'valibot'
import { free, listOf, mapOf, section, text, url } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { notYet } from '../../../document/unsupported.ts'
import { runtimeSpecRules } from './runtime-spec.ts'

/** Fields directly in `machine`. */
export const machineRuntimeFields = {
  sysctls: v.pipe(
    mapOf(text),
    v.description('Kernel parameters under /proc/sys.'),
    v.metadata({ example: { 'net.ipv4.ip_forward': '1' } }),
  ),
  sysfs: v.pipe(mapOf(text), v.description('Kernel parameters under /sys.')),
  env: mapOf(text),
  logging: section({
    destinations: notYet(
      listOf(section({ endpoint: url('tcp', 'udp'), format: text, extraTags: mapOf(text) })),
      'logs of services are not sent anywhere, follow them with "talosctl logs -f"',
    ),
  }),
  kernel: v.pipe(
    section({ modules: listOf(section({ name: text, parameters: listOf(text) })) }),
    v.description('Kernel modules to load.'),
    v.metadata({ example: { modules: [{ name: 'btrfs' }] } }),
  ),
  udev: section({ rules: listOf(text) }),
  baseRuntimeSpecOverrides: free,
}

const machineRuntime = section(machineRuntimeFields)

/** Rules of these sections. */
export function machineRuntimeRules({ logging, baseRuntimeSpecOverrides }: v.InferOutput<typeof machineRuntime>, report: Reporter): void {
  if (baseRuntimeSpecOverrides) runtimeSpecRules(baseRuntimeSpecOverrides, report)
  for (const [index, { endpoint, format }] of (logging?.destinations ?? []).entries()) {
    const path = ['machine', 'logging', 'destinations', index]
    if (!endpoint) report.error([...path, 'endpoint'], 'an endpoint is required, like "tcp://192.168.3.7:3478"')
    else if (!new URL(endpoint).hostname) report.error([...path, 'endpoint'], 'the endpoint has no host')
    if (format !== 'json_lines') report.error([...path, 'format'], 'the format has to be "json_lines"')
  }
}
