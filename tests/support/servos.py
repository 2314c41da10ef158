"""A light wheel with a strong servo, and what bounds the servo's force, for both steppers."""

WHEEL = """
<mujoco><option gravity="0 0 0" timestep="0.002"/>
  <worldbody><body><joint name="j" axis="0 0 1" {joint}/>
    <geom type="cylinder" size=".076 .025" mass=".3"/></body></worldbody>
  <actuator><{servo} joint="j" {own}/></actuator>
</mujoco>"""

CLAMPS = {
    "its own": ('forcerange="-400 400"', ""),
    "its joint's": ("", 'actuatorfrcrange="-400 400"'),
    "geared": ('forcerange="-40 40" gear="10"', 'actuatorfrcrange="-500 500"'),
}
"""(of the servo, of the joint)"""
