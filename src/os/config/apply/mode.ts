import { machine } from '../../../rpc/enums.ts'

const { AUTO, NO_REBOOT, REBOOT, STAGED, TRY } = machine.ApplyConfigurationRequest.Mode

/** How a new configuration takes effect: each mode with its number on the wire. */
export const applyModes = { auto: AUTO, 'no-reboot': NO_REBOOT, reboot: REBOOT, staged: STAGED, try: TRY } as const

/** One of these modes. */
export type ApplyMode = keyof typeof applyModes

/** The names of the modes. */
export const applyModeNames = Object.keys(applyModes) as ApplyMode[]
