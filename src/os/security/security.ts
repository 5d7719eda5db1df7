import type { Area } from '../area.ts'
import { verifyImage } from './api/verify.ts'
import { configImageVerification } from './controllers/image-verification.ts'
import { resources } from './resource-types.ts'

/** Verification of image signatures. */
export const security: Area = {
  name: 'security',
  resources,
  parts: (machine) => ({
    controllers: [configImageVerification],
    methods: [verifyImage(machine)],
  }),
}
