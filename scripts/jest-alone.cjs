// Jest runs the tests of one runner after those of another. Under this name, the usual runner is another one: its tests have
// the machine to themselves, but for each other.
module.exports = require('jest-runner');
