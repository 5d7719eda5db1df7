import { type Controller, defineController, shared, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { operatorSpecs } from '../../declared-specs.ts'
import { configuredLinks } from '../../link/configured.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkStatus } from '../../resources/link.ts'
import { OperatorSpec } from '../../resources/operator-spec.ts'

/** Declares the configured shared addresses. */
export const configVips = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.OperatorVIPConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(OperatorSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      const configured = configuredLinks({ config, devices, links }, boot)
      for (const [id, desired] of operatorSpecs(configured, 'configuration'))
        if (desired.operator === 'vip') spec.put(`configuration/${id}`, desired)
    },
  })
