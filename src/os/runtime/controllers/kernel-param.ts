import { type Controller, defineController, exclusive, shared, strong, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { KernelParamDefaultSpec, KernelParamSpec, KernelParamStatus } from '../resources/kernel-param.ts'

/** Parameters that a Kubernetes node needs, and those that keep its ports free. */
const needed: Readonly<Record<string, string>> = {
  'net.ipv4.ip_forward': '1',
  'net.ipv4.icmp_ignore_bogus_error_responses': '1',
  'net.ipv4.icmp_echo_ignore_broadcasts': '1',
  'net.ipv4.tcp_keepalive_time': '600',
  'net.ipv4.tcp_keepalive_intvl': '60',
  'net.ipv4.ip_local_reserved_ports': '50000,50001',
  'net.ipv6.conf.default.forwarding': '1',
  'net.ipv6.conf.default.accept_ra': '2',
  'kernel.panic': '10',
  'kernel.pid_max': '262144',
  'vm.overcommit_memory': '1',
  'fs.inotify.max_user_instances': '8192',
  'fs.aio-max-nr': '1048576',
}

/** Exist only once their module is loaded: no reason to fail. */
const optional: Readonly<Record<string, string>> = {
  'net.bridge.bridge-nf-call-iptables': '1',
  'net.bridge.bridge-nf-call-ip6tables': '1',
}

/** Hardening of a machine of its own, after the Kernel Self Protection Project. */
const hardening: Readonly<Record<string, string>> = {
  'dev.tty.ldisc_autoload': '0',
  'dev.tty.legacy_tiocsti': '0',
  'fs.protected_symlinks': '1',
  'fs.protected_hardlinks': '1',
  'fs.protected_fifos': '2',
  'fs.protected_regular': '2',
  'fs.suid_dumpable': '0',
  'kernel.kptr_restrict': '2',
  'kernel.dmesg_restrict': '1',
  'kernel.perf_event_paranoid': '3',
  'kernel.randomize_va_space': '2',
  'kernel.yama.ptrace_scope': '2',
  'user.max_user_namespaces': '0',
  'kernel.unprivileged_bpf_disabled': '1',
  'net.core.bpf_jit_harden': '2',
  'vm.unprivileged_userfaultfd': '0',
}

/** What the kubelet requires with `protectKernelDefaults`, beside those above. */
const kubelet: Readonly<Record<string, string>> = {
  'vm.panic_on_oom': '0',
  'kernel.panic_on_oops': '1',
  'kernel.keys.root_maxkeys': '1000000',
  'kernel.keys.root_maxbytes': '25000000',
}

/** Parameters in namespaces of the container; all others are its host's. */
const namespaced = /^(net\.|kernel\.(shm|msg|sem|hostname|domainname)|fs\.mqueue\.)/

/** Default parameters of the system. */
export const defaultKernelParams = ({ mode }: Pick<Kernel, 'mode'>): Controller =>
  defineController({
    name: 'runtime.KernelParamDefaultsController',
    inputs: {},
    outputs: { specs: shared(KernelParamDefaultSpec) },
    reconcile({ specs }) {
      for (const [name, value] of Object.entries(needed)) specs.put(`proc.sys.${name}`, { value, ignoreErrors: false })
      for (const [name, value] of Object.entries(optional)) specs.put(`proc.sys.${name}`, { value, ignoreErrors: true })
      if (mode === 'container') return
      for (const [name, value] of Object.entries(kubelet)) specs.put(`proc.sys.${name}`, { value, ignoreErrors: false })
      for (const [name, value] of Object.entries(hardening)) specs.put(`proc.sys.${name}`, { value, ignoreErrors: true })
    },
  })

/** Parameters from the configuration: `sysctls` and `sysfs`. */
export const configKernelParams: Controller = defineController({
  name: 'runtime.KernelParamConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { specs: shared(KernelParamSpec) },
  reconcile({ config, specs }) {
    const machine = declared(config.get('v1alpha1'))?.machine
    for (const [name, value] of Object.entries(machine?.sysctls ?? {}))
      specs.put(`proc.sys.${name}`, { value: String(value), ignoreErrors: false })
    for (const [name, value] of Object.entries(machine?.sysfs ?? {}))
      specs.put(`sys.${name}`, { value: String(value), ignoreErrors: false })
  },
})

/** Sets parameters, and restores the previous value when one is removed. Parameters that cannot be set are reported. */
export const applyKernelParams = ({ mode, sysctl, files }: Pick<Kernel, 'mode' | 'sysctl' | 'files'>): Controller => {
  /** The previous values; undefined where there was none, or none that can be read. */
  const before = new Map<string, string | undefined>()
  const read = (id: string): string | undefined =>
    files
      .readTextIfThere(path(id), { limit: 1 << 16 })
      ?.trim()
      .replaceAll('\t', ' ')
  /** Some parameters cannot be read, or not before they are set (net.ipv6.conf.*.stable_secret): this is not an error. */
  const look = (id: string): { there: boolean; value?: string | undefined } => {
    try {
      const value = read(id)
      return { there: value !== undefined, value }
    } catch (error) {
      if (!(error instanceof Error && 'code' in error)) throw error
      return { there: true }
    }
  }
  const path = (id: string) =>
    id.startsWith('proc.sys.') ? sysctl.sysctlPath(id.slice('proc.sys.'.length)) : `/sys/${id.slice(4).replaceAll('.', '/')}`
  return defineController({
    name: 'runtime.KernelParamSpecController',
    inputs: { defaults: strong(KernelParamDefaultSpec), specs: strong(KernelParamSpec) },
    outputs: { statuses: exclusive(KernelParamStatus) },
    reconcile({ defaults, specs, statuses, log }) {
      const wanted = new Map([...defaults.list(), ...specs.list()].map(({ metadata, spec }) => [metadata.id, spec]))
      for (const [id, value] of before) {
        if (wanted.has(id)) continue
        if (value === undefined) log.info('kernel parameter cannot be unset, it stays until the next boot', { name: id })
        else files.writeInto(path(id), value)
        before.delete(id)
      }
      let failure: unknown
      for (const [id, { value, ignoreErrors }] of wanted) {
        const foreign = mode === 'container' && !(id.startsWith('proc.sys.') && namespaced.test(id.slice('proc.sys.'.length)))
        const { there, value: present } = look(id)
        if (foreign || !there) {
          statuses.put(id, { current: present ?? '', default: before.get(id) ?? present ?? '', unsupported: true })
          continue
        }
        if (!before.has(id)) before.set(id, present)
        try {
          if (present !== value) files.writeInto(path(id), value)
          statuses.put(id, { current: value, default: before.get(id) ?? '', unsupported: false })
        } catch (error) {
          statuses.put(id, { current: present ?? '', default: before.get(id) ?? '', unsupported: true })
          if (ignoreErrors) continue
          log.warn('set kernel parameter failed', { name: id, value, error })
          failure ??= error
        }
      }
      if (failure && mode !== 'container') throw failure
    },
  })
}
