/** The parameters of the kernel command line: what each does, and for one that has no effect, what to do instead. */
import { type Parameter, parameterValues } from '../../../wire/command-line.ts'
import { hostnameProblem } from '../../network/documents/hostname.ts'
import { dashboardTerminal, settleTime } from '../../runtime/public.ts'
import { parseApiUrl } from '../../siderolink/public.ts'
import { kmsgProblem, sinkProblem } from '../../telemetry/documents/event-sink.ts'
import { parseWipe } from '../start/wipe-disks.ts'
import { accepted, boolean, type KernelParameter, oneOf } from './parameter.ts'

/** What udevd takes for a switch. */
const udevSwitch = /^(1|y|yes|t|true|on|0|n|no|f|false|off)$/i

/** Where the machine is, and its configuration. */
const sources: readonly KernelParameter[] = [
  { name: 'talos.platform', value: 'NAME', effect: 'the platform ([platforms.md](platforms.md)); required' },
  {
    name: 'talos.config',
    value: 'URL, `metal-iso`, `none`',
    effect: 'where the configuration is ([platforms.md](platforms.md)); `guestinfo` on `vmware`',
    secret: true,
    kept: true,
  },
  {
    name: 'talos.config.early',
    value: 'base64 of zstd of YAML',
    effect: 'a configuration that the one of the platform completes',
    repeated: 'all',
    secret: true,
  },
  {
    name: 'talos.config.inline',
    value: 'base64 of zstd of YAML',
    effect: 'a configuration that completes the one of the platform',
    repeated: 'all',
    secret: true,
  },
  { name: 'talos.config.oauth.client_id', value: 'text', effect: 'the download needs the consent of a person: the client of the request' },
  { name: 'talos.config.oauth.client_secret', value: 'text', effect: 'the password of the client', secret: true },
  { name: 'talos.config.oauth.audience', value: 'text', effect: 'for whom the token is' },
  { name: 'talos.config.oauth.scope', value: 'text', effect: 'what the token allows', repeated: 'all' },
  { name: 'talos.config.oauth.device_auth_url', value: 'URL', effect: 'where a code is requested, in place of `/device/code`' },
  { name: 'talos.config.oauth.token_url', value: 'URL', effect: 'where the token is fetched, in place of `/token`' },
  {
    name: 'talos.config.oauth.extra_variable',
    value: 'NAME',
    effect: 'a variable of `talos.config` that the request for a code states',
    repeated: 'all',
  },
  { name: 'ds', value: '`nocloud;s=URL`', effect: 'where the data of the platform `nocloud` is', repeated: 'first' },
  {
    name: 'siderolink.api',
    value: 'URL',
    effect: 'the management server ([management.md](management.md))',
    secret: true,
    kept: true,
    check: accepted(parseApiUrl),
  },
  {
    name: 'em.events_url',
    value: 'URL',
    effect: 'where events go, on `equinixMetal`',
    secret: true,
    kept: true,
    check(_, all) {
      const platform = parameterValues(all, 'talos.platform').at(-1)
      return platform === 'equinixMetal' ? undefined : 'it has an effect with "talos.platform=equinixMetal" only'
    },
  },
]

/** How the machine starts and ends. */
const life: readonly KernelParameter[] = [
  {
    name: 'talos.environment',
    value: 'NAME=VALUE',
    effect: 'a variable of services ([operating.md](operating.md)); `INSTALLER_META_BASE64` sets values of META ([images.md](images.md))',
    repeated: 'all',
    secret: true,
    check: (value) => (value.indexOf('=') > 0 ? undefined : 'use NAME=VALUE'),
  },
  {
    name: 'talos.experimental.wipe',
    value: '`system`, `system:LABEL,…`, `/dev/x,…`',
    effect: 'is wiped before any disk is used, and after the whole system disk the machine restarts; with a wrong value it does not start',
    check: accepted(parseWipe),
  },
  {
    name: 'talos.device.settle_time',
    value: 'duration',
    effect: 'a further wait for devices that appear late, of `10m` at most',
    check: (value) => (settleTime(value) === undefined ? 'use a duration of at most 10m, such as 30s' : undefined),
  },
  { name: 'talos.halt_if_installed', value: '0, 1', effect: 'a medium does not start an installed machine', check: boolean },
  {
    name: 'talos.shutdown',
    value: '`poweroff`, `halt`',
    effect: 'how a shutdown ends: with `halt` the machine stays powered',
    check: oneOf('poweroff', 'halt'),
  },
  {
    name: 'panic',
    value: 'seconds',
    effect:
      'until a kernel that panics restarts, `10` once init runs; with `0` a machine whose start fails stays as it is, too, so that its console and its logs can be read',
  },
  { name: 'talos.auditd.disabled', value: '0, 1', effect: 'no audit log of the kernel', kept: true, check: boolean },
  { name: 'talos.dashboard.disabled', value: '0, 1', effect: 'no dashboard', kept: true, check: boolean },
  {
    name: 'talos.dashboard.console',
    value: 'terminal',
    effect: 'where the dashboard is, in place of `tty2`',
    check: accepted((value) => dashboardTerminal(`talos.dashboard.console=${value}`)),
  },
  {
    name: 'talos.events.sink',
    value: 'HOST:PORT',
    effect: 'where events go, unless a configuration has a place for them ([logging.md](logging.md))',
    kept: true,
    check: sinkProblem,
  },
  {
    name: 'talos.logging.kernel',
    value: 'URL',
    effect: 'where kernel messages go ([logging.md](logging.md))',
    kept: true,
    check: kmsgProblem,
  },
  { name: 'ichor.slot', value: '`a`, `b`', effect: 'the slot that was started; written by an installation' },
  { name: 'ichor.trial-minutes', value: 'minutes', effect: 'how long a new release has to come up ([upgrades.md](upgrades.md))' },
]

/** The network before there is a configuration; wrong values are reported by the area of the network. */
const network: readonly KernelParameter[] = [
  { name: 'talos.hostname', value: 'NAME', effect: 'the host name, before that of `ip`', check: hostnameProblem },
  { name: 'talos.network.interface.ignore', value: 'LINK', effect: 'a link that is left alone', repeated: 'all' },
  {
    name: 'ip',
    value: '`dhcp`, `LINK:dhcp`, `CLIENT::GATEWAY:MASK:HOST:LINK:METHOD:DNS:DNS:NTP`',
    effect: 'addresses; IPv6 in brackets',
    repeated: 'all',
  },
  { name: 'bond', value: '`NAME:LINKS:OPTIONS:MTU`', effect: 'a bond, with options by their names in the kernel', repeated: 'first' },
  { name: 'vlan', value: '`NAME.ID:LINK`', effect: 'a VLAN, named `LINK.ID`', repeated: 'first' },
  { name: 'bridge', value: '`NAME:LINKS`', effect: 'a bridge', repeated: 'all' },
  { name: 'nameserver', value: 'address', effect: 'a name server', repeated: 'all' },
  {
    name: 'net.ifnames',
    value: '0, 1',
    effect: 'with `0` links keep the names of the kernel, such as `eth0`',
    kept: true,
    check: (value) => (udevSwitch.test(value) ? undefined : 'use 0 or 1'),
  },
]

/** SELinux and AppArmor exclude each other, and the kernel takes AppArmor by itself. */
function withSelinux(value: string, all: readonly Parameter[]): string | undefined {
  if (value === '0') return undefined
  if (value !== '1') return 'use 1 or 0'
  const isUsed = parameterValues(all, 'security').at(-1) === 'selinux'
  return isUsed ? undefined : 'the kernel uses AppArmor: add "security=selinux"'
}

/** What the kernel enforces, and what this system has not. */
const hardening: readonly KernelParameter[] = [
  { name: 'slab_nomerge', value: 'none', effect: 'required: the machine does not start without' },
  { name: 'pti', value: '`on`', effect: 'required: the machine does not start without' },
  { name: 'module.sig_enforce', value: '1', effect: 'only signed modules are loaded; `lockdown` of the image does the same', kept: true },
  {
    name: 'security',
    value: '`selinux`, `apparmor`',
    effect: 'which of the two the kernel uses, AppArmor unless specified ([kernel.md](kernel.md))',
    check: oneOf('selinux', 'apparmor'),
  },
  { name: 'selinux', value: '1', effect: 'SELinux is wanted; it is used with `security=selinux`', check: withSelinux },
  {
    name: 'enforcing',
    value: '1',
    effect: 'the SELinux policy is enforced, which was not tried with Kubernetes; without `security=selinux` the machine does not start',
    check: withSelinux,
  },
  { name: 'talos.fips140', value: '`strict`', effect: 'the cryptography of this system has no FIPS mode: leave it out', refused: 'always' },
  {
    name: 'talos.unified_cgroup_hierarchy',
    value: '0',
    effect: 'control groups of version 1 are not supported: leave it out',
    refused: '0',
  },
  { name: 'talos.debugshell', value: 'none', effect: 'there is no shell in the image: use `talosctl debug`', refused: 'always' },
]

/** All of them, by subject. */
export const kernelParameters: readonly (readonly [subject: string, parameters: readonly KernelParameter[]])[] = [
  ['Where the machine is, and its configuration', sources],
  ['How it starts and ends', life],
  ['Network', network],
  ['Hardening, and what is refused', hardening],
]
