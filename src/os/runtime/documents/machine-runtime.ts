/** Sections of `machine` about the kernel, logs and the environment. */
import * as v from 'valibot'
import { described, free, listOf, mapOf, section, text, url } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { runtimeSpecRules } from './runtime-spec.ts'

/** Fields directly in `machine`. */
export const machineRuntimeFields = {
  sysctls: v.pipe(
    mapOf(text),
    v.description('Kernel parameters under /proc/sys.'),
    v.metadata({ example: { 'net.ipv4.ip_forward': '1' } }),
  ),
  sysfs: described(mapOf(text), 'Kernel parameters under /sys.'),
  env: described(mapOf(text), 'Environment variables of the services of the system.'),
  logging: described(
    section({
      destinations: described(
        listOf(
          section({
            endpoint: described(url('tcp', 'udp', 'tls'), 'The address, like tcp://10.0.0.1:5000.'),
            format: described(text, 'How they are written: json_lines.'),
            extraTags: described(mapOf(text), 'Fields that are added to every line.'),
          }),
        ),
        'Who gets them.',
      ),
    }),
    'Where logs of the services are sent.',
  ),
  kernel: v.pipe(
    section({
      modules: described(
        listOf(
          section({ name: described(text, 'The name of the module.'), parameters: described(listOf(text), 'Its parameters, name=value.') }),
        ),
        'Modules of the kernel.',
      ),
    }),
    v.description('Kernel modules to load.'),
    v.metadata({ example: { modules: [{ name: 'btrfs' }] } }),
  ),
  udev: described(section({ rules: described(listOf(text), 'Rules, a line each.') }), 'How devices are treated when they come.'),
  baseRuntimeSpecOverrides: described(free, 'What every container is given beside the usual.'),
}

const machineRuntime = section(machineRuntimeFields)

/** Rules of these sections. */
export function machineRuntimeRules({ logging, baseRuntimeSpecOverrides }: v.InferOutput<typeof machineRuntime>, report: Reporter): void {
  if (baseRuntimeSpecOverrides) runtimeSpecRules(baseRuntimeSpecOverrides, report)
  for (const [index, { endpoint, format }] of (logging?.destinations ?? []).entries()) {
    const path = ['machine', 'logging', 'destinations', index]
    if (!endpoint) report.error([...path, 'endpoint'], 'an endpoint is required, like "tcp://192.168.3.7:3478"')
    else if (!new URL(endpoint).hostname) report.error([...path, 'endpoint'], 'the endpoint has no host')
    else if (!new URL(endpoint).port) report.error([...path, 'endpoint'], 'the endpoint has no port')
    if (format !== 'json_lines') report.error([...path, 'format'], 'the format has to be "json_lines"')
  }
}
