import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { parseApiUrl } from '../api-url.ts'
import { SideroLinkConfig } from '../documents/siderolink.ts'
import { SiderolinkConfig } from '../resources/siderolink.ts'

/** The management server: of the configuration, else of the kernel command line (`siderolink.api`). */
export const configSiderolink = (commandLine: string): Controller =>
  defineController({
    name: 'siderolink.ConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { link: exclusive(SiderolinkConfig), diagnostics: shared(Diagnostic) },
    reconcile({ config, link, diagnostics }) {
      const given = parameterValues(parseCommandLine(commandLine), 'siderolink.api').at(-1)
      const apiEndpoint = find(declared(config.get('v1alpha1')), SideroLinkConfig)?.apiUrl ?? given
      if (!apiEndpoint) return
      try {
        const { address, plain, joinToken, tunnel } = parseApiUrl(apiEndpoint)
        link.put('siderolink', { apiEndpoint, host: address, joinToken, insecure: plain, tunnel })
      } catch (error) {
        diagnostics.put('siderolink-api', {
          message: `siderolink.api: ${messageOf(error)}`,
          details: ['the machine does not join its management server'],
        })
      }
    },
  })
