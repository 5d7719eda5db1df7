import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { HostnameStatus } from '../../../network/resources/hostname.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { Nodename } from '../../resources/nodename.ts'

/** The node's name in Kubernetes: its hostname, with the domain when so configured. */
export const configNodename = defineController({
  name: 'k8s.NodenameController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), hostname: weak(HostnameStatus, { id: 'hostname' }) },
  outputs: { nodename: exclusive(Nodename) },
  reconcile({ config, hostname, nodename }) {
    const kubelet = kubernetesConfigOf(config.get('v1alpha1'))
    const status = hostname.get('hostname')
    if (!kubelet || !status) return
    const { hostname: name, domainname } = status.spec
    const full = kubelet.machine?.kubelet?.registerWithFQDN && domainname ? `${name}.${domainname}` : name
    nodename.put('nodename', {
      nodename: asNodename(full),
      hostnameVersion: String(status.metadata.version),
      skipNodeRegistration: kubelet.machine?.kubelet?.skipNodeRegistration ?? false,
    })
  },
})

/** A hostname as a valid node name: lower case, and only characters that a DNS name may have. */
export function asNodename(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/_/g, '-')
    .replace(/[^a-z0-9.-]/g, '')
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
}
