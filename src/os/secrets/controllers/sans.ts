import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import { isIp } from '../../../wire/ip.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { CertSAN } from '../resources/cert-san.ts'
import { KubernetesRootSecret } from '../resources/kubernetes-root-secret.ts'
import { OSRootSecret } from '../resources/os-root-secret.ts'

type Hostname = SpecOf<typeof HostnameStatus>

/** Names of the machine API's certificates: the node's addresses and names, and those the configuration adds. */
export const configApiSans: Controller = defineController({
  name: 'secrets.APICertSANsController',
  effects: 'none',
  inputs: { root: weak(OSRootSecret), hostname: weak(HostnameStatus), addresses: weak(NodeAddress) },
  outputs: { sans: shared(CertSAN) },
  reconcile({ root, hostname, addresses, sans }) {
    const os = root.get('os')?.spec
    const name = hostname.get('hostname')?.spec
    const own = addresses.get('accumulative-no-k8s')?.spec.addresses
    if (!os || !name || !own) return
    sans.put('api', {
      ips: unique([...own.map(addressOnly), ...os.certSANIPs, '127.0.0.1', '::1']),
      dnsNames: unique([...names(name), ...os.certSANDNSNames]),
      fqdn: fqdn(name),
    })
  },
})

/** Names of the API server's certificate. */
export const configKubernetesSans: Controller = defineController({
  name: 'secrets.KubernetesCertSANsController',
  effects: 'none',
  inputs: { root: weak(KubernetesRootSecret), hostname: weak(HostnameStatus), addresses: weak(NodeAddress) },
  outputs: { sans: shared(CertSAN) },
  reconcile({ root, hostname, addresses, sans }) {
    const k8s = root.get('k8s')?.spec
    const name = hostname.get('hostname')?.spec
    const own = addresses.get('accumulative-no-k8s')?.spec.addresses
    if (!k8s || !name || !own) return
    const endpoint = splitHostPort(k8s.endpoint?.host ?? '', 0).host
    const given = [endpoint, ...k8s.certSANs].filter(Boolean)
    sans.put('k8s', {
      ips: unique([...given.filter(isIp), ...own.map(addressOnly), ...k8s.apiServerIPs, '127.0.0.1']),
      dnsNames: unique([
        ...given.filter((entry) => !isIp(entry)),
        'kubernetes',
        'kubernetes.default',
        'kubernetes.default.svc',
        `kubernetes.default.svc.${k8s.dnsDomain}`,
        'localhost',
        ...names(name),
      ]),
      fqdn: fqdn(name),
    })
  },
})

/** Names of the certificate used while there is no configuration. */
export const configMaintenanceSans: Controller = defineController({
  name: 'secrets.MaintenanceCertSANsController',
  effects: 'none',
  inputs: { hostname: weak(HostnameStatus), addresses: weak(NodeAddress) },
  outputs: { sans: shared(CertSAN) },
  reconcile({ hostname, addresses, sans }) {
    const name = hostname.get('hostname')?.spec
    sans.put('maintenance', {
      ips: unique([...(addresses.get('accumulative')?.spec.addresses ?? []).map(addressOnly), '127.0.0.1', '::1']),
      dnsNames: unique(name ? names(name) : []),
      fqdn: 'maintenance-service.talos.dev',
    })
  },
})

function fqdn({ hostname, domainname }: Hostname): string {
  return domainname ? `${hostname}.${domainname}` : hostname
}

function names(name: Hostname): string[] {
  return name.domainname ? [name.hostname, fqdn(name)] : [name.hostname]
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)]
}
